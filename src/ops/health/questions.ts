import { DATABASE_QUESTIONS } from './database-questions.ts';
import type { Finding, Health } from './findings.ts';
import type { Question } from './question.ts';
import { SERVER_QUESTIONS } from './server-questions.ts';
import { WABA_QUESTIONS } from './waba-check.ts';

/**
 * Each question about the health of an installation once, with its only limits, in the order of the doctor. Doctor, portal,
 * metrics, alerts and /readyz ask here, and so does the check of a WABA; a test compares the rules of Prometheus and the documents.
 */
export const QUESTIONS = { ...DATABASE_QUESTIONS, ...SERVER_QUESTIONS, ...WABA_QUESTIONS };

export type QuestionId = keyof typeof QUESTIONS;
type Asked<Id extends QuestionId> = (typeof QUESTIONS)[Id];
export type AnswerTo<Id extends QuestionId> = Awaited<ReturnType<Asked<Id>['ask']>>;
export type Answers<Id extends QuestionId> = { [Each in Id]: AnswerTo<Each> };
/** For all of some questions. */
export type ToolsFor<Id extends QuestionId> = {
  [Each in Id]: (tools: Parameters<Asked<Each>['ask']>[0]) => void;
}[Id] extends (tools: infer Tools) => void
  ? Tools
  : never;

export const ALL: Readonly<Record<QuestionId, Question<never, unknown>>> = QUESTIONS;

/** Asks them side by side. */
export async function askAll<Id extends QuestionId>(
  ids: readonly Id[],
  tools: ToolsFor<Id>,
): Promise<Answers<Id>> {
  const answers = ids.map(async (id) => [id, await ALL[id].ask(tools as never)]);
  return Object.fromEntries(await Promise.all(answers)) as Answers<Id>;
}

export function healthOf<Id extends QuestionId>(id: Id, answer: AnswerTo<Id>): Health {
  const { of = () => 0, degraded = 0, down = Number.POSITIVE_INFINITY } = ALL[id].limit ?? {};
  const value = of(answer);
  if (value > down) return 'down';
  return value > degraded ? 'degraded' : 'up';
}

/** The finding of an answer that is not up, with the advice of the list; false: it is. */
export function unlessUp<Id extends QuestionId>(
  id: Id,
  answer: AnswerTo<Id>,
  detail: string,
): Finding | false {
  const status = healthOf(id, answer);
  return status !== 'up' && { status, detail, todo: ALL[id].advice ?? '' };
}

/** Rejects when there is no answer, or when it is down. */
export async function requireUp<Id extends QuestionId>(
  ids: readonly Id[],
  tools: ToolsFor<Id>,
): Promise<void> {
  const answers = await askAll(ids, tools);
  const isDown = ids.some((id) => healthOf(id, answers[id]) === 'down');
  if (isDown) throw new Error(`down: ${ids.join(', ')}`);
}

/** By host and process. */
export function liveWorkers(workers: AnswerTo<'workers'>): string[] {
  return workers.flatMap(({ id, isUp }) => (isUp ? [id] : [])).toSorted();
}
