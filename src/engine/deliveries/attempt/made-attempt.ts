import type { ClaimedDelivery } from '../../queue/claim.ts';
import type { SendableEndpoint, SentRequest } from './send-delivery.ts';

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

export function isFailure({ sent: { result } }: MadeAttempt): boolean {
  return result.outcome === 'error' || result.statusCode < 200 || result.statusCode > 299;
}

export function isGone({ sent: { result } }: MadeAttempt): boolean {
  return result.outcome === 'response' && result.statusCode === 410;
}
