import { MESSAGE_BATCH } from '../../../platform/event-type.ts';
import type { ClaimedDelivery } from '../../queue/claim.ts';
import type { SendableEndpoint, SentRequest } from './send-delivery.ts';

/** The decisions of recording an attempt so far, and what it used up or met: it may have to be tried again. */
type Recording = {
  /** Whether its endpoint has to be taken for down; null: the attempt was not counted yet. */
  isDown: boolean | null;
  hasStart: boolean;
  /** Why the database refused the attempt alone, so that the next try leaves that part out. */
  refusal: { error: unknown } | null;
  lockedFromMs: number | null;
};

/** Of an attempt that no try has recorded yet. */
export function newRecording(): Recording {
  return { isDown: null, hasStart: false, refusal: null, lockedFromMs: null };
}

/** One attempt from its answer to its record: a claim, what was sent, how recording goes. */
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
  readonly recording: Recording;
};

/** Whether an attempt delivered one event and decides nothing about its endpoint. */
export function isPlainSuccess(attempt: MadeAttempt): boolean {
  return !isFailure(attempt) && !attempt.isProbe && attempt.eventType !== MESSAGE_BATCH;
}

export function isFailure({ sent: { result } }: MadeAttempt): boolean {
  return result.outcome === 'error' || result.statusCode < 200 || result.statusCode > 299;
}

export function isGone({ sent: { result } }: MadeAttempt): boolean {
  return result.outcome === 'response' && result.statusCode === 410;
}
