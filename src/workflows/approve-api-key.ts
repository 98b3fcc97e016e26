import {
  CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  setDefaultSignalHandler,
  setHandler,
  upsertMemo,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type {
  ApproveApiKeyInput,
  GivenDecision,
  KeyRequestActivities,
  SeenRequest,
} from '../activities/approve-api-key.ts';
import { LOST_WORKER_RETRY, queuesBeside, searchAttributes } from '../platform/temporal/workflow-options.ts';
import { readDecision } from './decision-signal.ts';

/** The row has changed: look at it. */
const changed = defineSignal('changed');
const approve = defineSignal<unknown[]>('approve');
const deny = defineSignal<unknown[]>('deny');

/** Signals beyond these are dropped until the first of them are dealt with. */
const MAX_WAITING = 20;
const MAX_REMARKS = 5;

function activities(): KeyRequestActivities {
  return proxyActivities<KeyRequestActivities>({
    taskQueue: queuesBeside(workflowInfo().taskQueue).operations,
    startToCloseTimeout: '1 minute',
    retry: LOST_WORKER_RETRY,
  });
}

/**
 * Sees to one request for an API key until its key was revealed, or there will be none.
 *
 *   requested ── operator: portal or command ──▶ approved ──▶ revealed
 *        │ denied │ withdrawn │ 7 days without a decision: expired     │ denied │ withdrawn │ 7 days: expired
 *
 * The row in the database decides, and `changed` says that the portal or the CLI changed it. All other signals, and Cancel,
 * change nothing. The key is made when it is revealed, by the API process: nothing of it comes here. Terminate loses
 * nothing: the task in the database starts this workflow again.
 */
export async function approveApiKey(input: ApproveApiKeyInput): Promise<string> {
  const inbox = openInbox();
  try {
    return await followUntilOver(input, inbox);
  } catch (error) {
    if (!isCancellation(error)) throw error;
    return await CancellationScope.nonCancellable(async () => {
      const cancelled = { state: 'denied' as const, note: 'cancelled in Temporal', by: null };
      await activities().decideBySignal({ ...input, ...cancelled });
      return await followUntilOver(input, inbox);
    });
  }
}

async function followUntilOver(input: ApproveApiKeyInput, inbox: Inbox): Promise<string> {
  for (let known: string | null = null; ; ) {
    inbox.isStale = false;
    const seen = await activities().lookAtRequest(input);
    if (known === null) describeOnce(input, seen);
    known = seen.state;
    setCurrentDetails([seen.details, ...inbox.remarks].join('\n\n'));
    if (seen.isOver) return seen.summary;
    // A decision that came meanwhile would be lost with this run.
    const isHistoryLong = workflowInfo().continueAsNewSuggested && inbox.decisions.length === 0;
    if (isHistoryLong) return await continueAsNew<typeof approveApiKey>(input);
    await condition(() => inbox.isStale || inbox.decisions.length > 0, seen.waitMs);
    for (const decision of inbox.decisions.splice(0)) {
      const { refusal } = await activities().decideBySignal({ ...input, ...decision });
      if (refusal !== null) inbox.remark(`Signal refused: ${refusal}`);
    }
  }
}

/** What makes the run easy to find and to understand in the Temporal UI. */
function describeOnce({ wabaId }: ApproveApiKeyInput, { tenantId, memo }: SeenRequest): void {
  upsertMemo(memo);
  upsertSearchAttributes(searchAttributes({ tenantId, wabaId }));
}

/** What signals brought, until it is dealt with. */
type Inbox = {
  isStale: boolean;
  decisions: GivenDecision[];
  remarks: string[];
  remark(text: string): void;
};

/** Handlers only note what came, so that no signal can fail the workflow or get lost in it. */
function openInbox(): Inbox {
  const inbox: Inbox = {
    isStale: false,
    decisions: [],
    remarks: [],
    remark: (text) => {
      inbox.remarks = [...inbox.remarks.filter((known) => known !== text), text].slice(-MAX_REMARKS);
      inbox.isStale = true;
    },
  };
  const take = (state: GivenDecision['state'], args: unknown[]) => {
    const decision = readDecision(state, args);
    if (decision === null) {
      inbox.remark('Signal ignored: its input must be nothing, a text, or {"note": "…", "by": "…"}.');
    } else if (inbox.decisions.length < MAX_WAITING) inbox.decisions.push(decision);
  };
  setHandler(changed, () => {
    inbox.isStale = true;
  });
  setHandler(approve, (...args) => take('approved', args));
  setHandler(deny, (...args) => take('denied', args));
  setDefaultSignalHandler(() => inbox.remark('Signal ignored.'));
  return inbox;
}
