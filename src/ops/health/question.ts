import type { Database } from '../../platform/postgres/database.ts';

/** An answer above `degraded` warns an operator; above `down` if there is one, help is needed at once. */
type Limit<Answer> = {
  of(answer: Answer): number;
  degraded: number;
  down?: number;
  /** The rule of Prometheus that asks the same, the metric that it reads, and above what it fires if not above `degraded`. */
  rule?: [name: string, metric: string, firesAbove?: number];
};

/** A question about the health of an installation or of a WABA. */
export type Question<Tools, Answer> = {
  question: string;
  /** Anyone at /readyz, or a tenant about its WABA; absent: operators only. */
  asker?: 'anyone' | 'tenant';
  /** One query, or one call of another server; it rejects when there is no answer. */
  ask: (tools: Tools) => Promise<Answer>;
  /** Absent: each answer is up. */
  limit?: Limit<Answer>;
  /** What to do when the answer is not up, unless the answer says it. */
  advice?: string;
  /** The line of the doctor; several questions can share it. */
  line?: string;
  /** What to do when there is no answer. */
  away?: string | undefined;
};

/** `pool`: the database of a transaction, for which a process remembers its last look. */
export type OfDatabase = { database: Database; pool?: Database };

export const question = <Tools, Answer>(given: Question<Tools, Answer>) => given;

/** A question whose answer is in words, for a line of the doctor. */
export const look = <Tools, Answer>(
  line: string,
  question: string,
  ask: (tools: Tools) => Promise<Answer>,
  away?: string,
): Question<Tools, Answer> => ({ line, question, ask, away });

/** A question that a query answers. */
export const read = <Answer>(
  ask: (database: Database, pool: Database) => Promise<Answer>,
  given: Omit<Question<OfDatabase, Answer>, 'ask'>,
): Question<OfDatabase, Answer> => ({
  ...given,
  ask: ({ database, pool = database }) => ask(database, pool),
});
