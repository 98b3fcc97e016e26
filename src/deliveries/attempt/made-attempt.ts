import type { ClaimedDelivery } from '../../queue/claim.ts';
import type { SendableEndpoint, SentRequest } from './send-delivery.ts';

/** One attempt that was made under a claim. */
export type MadeAttempt = Omit<
  ClaimedDelivery,
  'endpointId' | 'endpointVersion' | 'eventDay' | 'sequence' | 'body'
> & {
  token: string;
  endpoint: SendableEndpoint;
  isProbe: boolean;
  sent: SentRequest;
  /** Traffic is calm: each delivery has a run. */
  isCalm: boolean;
  /** The workflow that shows the attempt: its own, or the one of the loop that made it. */
  workflowId: string | null;
};

/** Whether an attempt delivered and decides nothing about its endpoint. */
export function isPlainSuccess(attempt: MadeAttempt): boolean {
  return !isFailure(attempt) && !attempt.isProbe;
}

/** Whether an attempt did not deliver. */
export function isFailure({ sent: { result } }: MadeAttempt): boolean {
  return result.outcome === 'error' || result.statusCode < 200 || result.statusCode > 299;
}

/** Whether the receiver says that it is gone for good. */
export function isGone({ sent: { result } }: MadeAttempt): boolean {
  return result.outcome === 'response' && result.statusCode === 410;
}
