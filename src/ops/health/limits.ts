/** `degraded` warns an operator, `down` asks for help at once: above these, in the unit of the question. */
export type Question = {
  question: string;
  degraded: number;
  down: number;
  /** The rule of Prometheus that asks the same, and the metric that it reads; it fires above `degraded`, or `firesAbove`. */
  rule?: { name: string; metric: string; firesAbove?: number };
};

export type Health = 'up' | 'degraded' | 'down';

/**
 * Each question about the health of an installation once, with its only limits. The doctor, the portal, alerts and /readyz
 * read them here; a test compares the rules of Prometheus and the documents.
 */
export const QUESTIONS = {
  intakeSeconds: {
    question: 'For how long has the oldest body waited for intake?',
    degraded: 60,
    down: 300,
    rule: { name: 'HeliographIntakeStuck', metric: 'heliograph_inbox_oldest_pending_seconds' },
  },
  failedBodies: {
    question: 'How many bodies could not be ingested?',
    degraded: 0,
    down: Number.POSITIVE_INFINITY,
    rule: { name: 'HeliographIntakeStuck', metric: 'heliograph_inbox_failed' },
  },
  numberSeconds: {
    question: 'For how long has a body waited for its phone number?',
    degraded: 900,
    down: Number.POSITIVE_INFINITY,
    rule: { name: 'HeliographIntakeStuck', metric: 'heliograph_inbox_awaiting_number_oldest_seconds' },
  },
  dueSeconds: {
    question: 'For how long has a delivery been due at an endpoint that works?',
    degraded: 120,
    down: 600,
    rule: { name: 'HeliographDeliveriesStuck', metric: 'heliograph_deliveries_oldest_due_seconds' },
  },
  failedShare: {
    question: 'Which share of the attempts of all endpoints together fails?',
    degraded: 0.5,
    down: Number.POSITIVE_INFINITY,
    rule: { name: 'HeliographMostAttemptsFail', metric: 'heliograph_delivery_attempts_total' },
  },
  housekeepingSeconds: {
    question: 'For how long has a step of housekeeping failed?',
    degraded: 0,
    down: Number.POSITIVE_INFINITY,
    rule: {
      name: 'HeliographHousekeepingFails',
      metric: 'heliograph_housekeeping_failing_seconds',
      firesAbove: 4 * 3_600,
    },
  },
  quotaShare: {
    question: 'Which share of its quota has the tenant used that has used most?',
    degraded: 0.9,
    down: Number.POSITIVE_INFINITY,
    rule: { name: 'HeliographQuotaNearlyUsed', metric: 'heliograph_tenant_quota_used_ratio' },
  },
} as const satisfies Record<string, Question>;

export type QuestionId = keyof typeof QUESTIONS;

/** What an answer to a question says of the installation. */
export function healthOf(id: QuestionId, answer: number): Health {
  const { degraded, down } = QUESTIONS[id];
  if (answer > down) return 'down';
  return answer > degraded ? 'degraded' : 'up';
}

/** Of a worker process. What it loses, it usually has again within seconds. */
export const PROCESS_LIMITS = {
  /** A turn of a loop is several statements at most, each of which ends after 35 s. */
  turnMs: 180_000,
  listenerDownMs: 30_000,
  unpolledMs: 60_000,
  /** After so long in such a state, a new process would do better. */
  restartMs: 300_000,
} as const;
