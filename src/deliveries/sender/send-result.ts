import type { PhaseTimings } from './phase-timings.ts';
import type { SendErrorClass } from './send-error.ts';

/** What came of one webhook request. Any complete response is a `response`, whatever its status says. */
export type SendResult =
  | {
      outcome: 'response';
      statusCode: number;
      /** Names in lower case; several values of one name are joined with a comma. At most 16 KiB in all. */
      headers: Record<string, string>;
      /** The first 4 KiB. */
      body: Buffer;
      /** Whether the receiver sent more than `body` holds. */
      bodyTruncated: boolean;
      /** What the receiver asked to wait with Retry-After. */
      retryAfterMs: number | null;
      timings: PhaseTimings;
      /** The address that was connected to: for operators, not for tenants. */
      remoteAddress: string | null;
    }
  | {
      outcome: 'error';
      errorClass: SendErrorClass;
      /** One sentence without addresses or secrets, fit for tenants. */
      message: string;
      timings: PhaseTimings;
      remoteAddress: string | null;
    };

/** Whether the receiver did not answer, or could not be reached, in time. */
export function isTimeout(result: SendResult): boolean {
  return result.outcome === 'error' && result.errorClass === 'timeout';
}
