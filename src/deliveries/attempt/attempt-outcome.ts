/** What is left to do for a delivery after a try to attempt it. */
export type AttemptOutcome = SettledOutcome | UnattemptedOutcome;

/** An attempt was made and recorded. */
export type SettledOutcome =
  | { state: 'delivered'; statusCode: number; attempt: number }
  | { state: 'failed'; reason: string; attempt: number }
  /** To be attempted again after `delayMs`: by its workflow, or by a delivery loop where enough workflows are open. */
  | {
      state: 'retrying';
      reason: string;
      attempt: number;
      delayMs: number;
      isProbe: boolean;
      byWorkflow: boolean;
    }
  /** Kept in the queue, without having used up a retry, until its endpoint takes deliveries again. */
  | { state: 'deferred'; reason: string; attempt: number };

export type UnattemptedOutcome =
  /** Somebody else holds it, or it is not due before `delayMs`. */
  | { state: 'waiting'; reason: string; delayMs: number }
  /** Its endpoint takes no deliveries at present. */
  | { state: 'off'; reason: string }
  /** Settled before, by this workflow or another. */
  | { state: 'finished' };
