import { SYSTEM } from '../../platform/audit/audit.ts';
import { GraphError, isTokenError } from '../../platform/graph/graph-error.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { publicSetupId } from '../../platform/public-ids.ts';
import { retryDelayMs } from '../../platform/temporal/activity-kit.ts';
import { finishTask } from '../../platform/temporal/workflow-tasks.ts';
import {
  ENDED,
  findSetupLink,
  lockSetupLink,
  type SetupChange,
  type SetupLink,
  saveSetupLink,
  WORKING,
} from './setup-link-store.ts';
import { noteConnected, noteLink } from './setup-notes.ts';
import { failedBy, SetupProblem } from './setup-problem.ts';
import { nextStep } from './setup-steps.ts';
import { setUpWorkflowId } from './setup-task.ts';
import { AgainLater, codeOf, type StepResult, type StepTools } from './step-kit.ts';

/** How far a link is, in ids and words of ours; `end`: null while there is more to do, after `waitMs`. */
export type SetupProgress = {
  summary: string;
  waitMs: number;
  end: 'done' | 'failed' | 'waits for the customer' | 'over' | null;
};

/**
 * Does one step of a link and writes what it led to, unless the link was changed meanwhile. The task ends with the state that ends the run: what the
 * customer does later makes a new one.
 */
export async function runSetupStep(tools: StepTools, id: string): Promise<SetupProgress> {
  const link = await findSetupLink(tools.database, { id });
  if (link === null || !isToDo(link)) return await endRun(tools.database, id);
  try {
    return await applyStep(tools, link, await nextStep(tools, link));
  } catch (error) {
    if (error instanceof AgainLater) return await waitFor(tools, link, error);
    if (error instanceof SetupProblem) return await fail(tools, link, error);
    if (!(error instanceof GraphError)) throw error;
    const summary = `${link.state}: upstream answers ${codeOf(error)}`;
    if (error.transient) return await waitFor(tools, link, new AgainLater(summary, error.retryAfterMs));
    return await fail(tools, link, refusal(link, error));
  }
}

function isToDo({ state, choice }: SetupLink): boolean {
  return WORKING.includes(state) && choice === null;
}

function refusal({ state }: SetupLink, error: GraphError): SetupProblem {
  const step = STEP_OF[state] ?? 'check';
  const upstreamCode = error.code;
  if (isTokenError(error)) {
    const message = `Upstream does not take the access token any more: ${error.message}`;
    return new SetupProblem(step, 'permission_missing', message, { upstreamCode, isFromStart: true });
  }
  return new SetupProblem(step, 'upstream_error', `Upstream refuses: ${error.message}`, { upstreamCode });
}

const STEP_OF: Partial<Record<SetupLink['state'], SetupProblem['step']>> = {
  authorized: 'waba',
  subscribed: 'register',
  registered: 'check',
};

/** Nothing to do: the link is over, failed or waits for the customer; or it was changed just now, and there is. */
async function endRun(database: Database, id: string): Promise<SetupProgress> {
  return await database.transaction(async (trx) => {
    const link = await lockSetupLink(trx, id);
    if (link !== null && isToDo(link)) return goesOn(link);
    await finishTask(trx, setUpWorkflowId(id));
    return link === null ? { summary: 'The link is gone.', waitMs: 0, end: 'over' } : endOf(link);
  });
}

function goesOn({ id, state }: Pick<SetupLink, 'id' | 'state'>, waitMs = 0): SetupProgress {
  return { summary: `${publicSetupId(id)} is ${state}.`, waitMs, end: null };
}

function endOf({ id, state, failure, choice }: SetupLink): SetupProgress {
  const name = publicSetupId(id);
  if (state === 'done') return { summary: `${name} is done.`, waitMs: 0, end: 'done' };
  if (ENDED.includes(state)) return { summary: `${name} is ${state}.`, waitMs: 0, end: 'over' };
  if (choice !== null) {
    return { summary: `The customer chooses a ${choice.of}.`, waitMs: 0, end: 'waits for the customer' };
  }
  const why = failure === null ? state : `${failure.step}: ${failure.code}`;
  return {
    summary: `${name} failed at ${why}. It goes on when the customer tries again.`,
    waitMs: 0,
    end: 'failed',
  };
}

async function applyStep(
  tools: StepTools,
  link: SetupLink,
  { change, before }: StepResult,
): Promise<SetupProgress> {
  return await changeUnchanged(tools.database, link, change, {
    ...(before !== undefined && { before }),
    after: async (trx, changed) => {
      if (change.state !== 'done') return;
      await noteConnected(trx, changed);
      await noteLink(trx, 'setup_link.done', changed);
    },
  });
}

async function fail(tools: StepTools, link: SetupLink, problem: SetupProblem): Promise<SetupProgress> {
  const change = failedBy(problem, link);
  return await changeUnchanged(tools.database, link, change, {
    after: async (trx, changed) => await noteLink(trx, 'setup_link.failed', changed, change),
  });
}

/** Each try in vain is counted, so that a worker that takes over waits as long. */
async function waitFor(tools: StepTools, link: SetupLink, later: AgainLater): Promise<SetupProgress> {
  const tries = link.tries + 1;
  const waitMs = retryDelayMs(tries, later.retryAfterMs);
  const progress = await changeUnchanged(tools.database, link, { tries }, {});
  if (progress.end !== null) return progress;
  const summary = `${later.message}; again in ${Math.ceil(waitMs / 1_000)} s, after ${tries} tries.`;
  return { ...progress, summary, waitMs };
}

/** Thrown to undo what a step did in its transaction. */
class ChangedMeanwhile extends Error {}

type Around = {
  before?: (trx: Transaction) => Promise<void>;
  after?: (trx: Transaction, changed: SetupLink) => Promise<void>;
};

/** Changes a link under its lock if it still is as it was seen: a revoked one stays revoked. */
async function changeUnchanged(
  database: Database,
  seen: SetupLink,
  change: SetupChange,
  { before, after }: Around,
): Promise<SetupProgress> {
  try {
    return await database.transaction(async (trx) => {
      await before?.(trx);
      const locked = await lockSetupLink(trx, seen.id);
      if (locked === null || locked.state !== seen.state || locked.choice !== null)
        throw new ChangedMeanwhile();
      await saveSetupLink(trx, seen.id, change);
      const changed = { ...locked, ...change };
      await after?.(trx, changed);
      if (isToDo(changed)) return goesOn(changed);
      await finishTask(trx, setUpWorkflowId(seen.id));
      return endOf(changed);
    });
  } catch (error) {
    if (!(error instanceof ChangedMeanwhile)) throw error;
    return await endRun(database, seen.id);
  }
}

/** Ends a link because its workflow was cancelled in Temporal. */
export async function endCancelledSetup(database: Database, id: string): Promise<string> {
  return await database.transaction(async (trx) => {
    const link = await lockSetupLink(trx, id);
    await finishTask(trx, setUpWorkflowId(id));
    const name = publicSetupId(id);
    if (link === null) return `${name} is gone.`;
    if (ENDED.includes(link.state)) return `${name} is ${link.state}.`;
    await saveSetupLink(trx, id, { state: 'revoked', tokenSealed: null, choice: null });
    await noteLink(trx, 'setup_link.revoked', link, { actor: SYSTEM });
    return `${name} is revoked: its workflow was cancelled.`;
  });
}
