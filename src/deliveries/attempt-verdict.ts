import type { SendResult } from './sender/send-result.ts';

/** What one response (or none) means for the delivery. Every reason is public: tenants read it in their log. */
export type AttemptVerdict =
  | { kind: 'delivered'; statusCode: number }
  | { kind: 'retry'; reason: string; retryAfterMs: number | null }
  /** 410: the receiver says that nobody listens there any more. */
  | { kind: 'gone'; reason: string };

/** Any 2xx is success and 410 ends the endpoint; everything else may be a passing fault, also 401 and 404. */
export function judgeAttempt(result: SendResult): AttemptVerdict {
  if (result.outcome === 'error') {
    return {
      kind: 'retry',
      reason: `${result.errorClass}: ${result.message.replace(/\.$/, '')}`,
      retryAfterMs: null,
    };
  }
  const { statusCode, retryAfterMs } = result;
  if (statusCode >= 200 && statusCode <= 299) return { kind: 'delivered', statusCode };
  if (statusCode === 410) return { kind: 'gone', reason: 'the endpoint answered 410 Gone' };
  const redirect = statusCode >= 300 && statusCode <= 399 ? ' (redirects are not followed)' : '';
  return { kind: 'retry', reason: `the endpoint answered ${statusCode}${redirect}`, retryAfterMs };
}
