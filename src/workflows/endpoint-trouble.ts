import {
  ActivityFailure,
  ApplicationFailure,
  allHandlersFinished,
  condition,
  continueAsNew,
  defineSignal,
  defineUpdate,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { EndpointTroubleActivities, TroubleAction } from '../activities/endpoint-trouble.ts';
import type { EndpointTroubleInput } from '../engine/deliveries/dispatch/trouble-watch.ts';
import type { ReportedFailure, TroubleShown } from '../engine/deliveries/trouble/look.ts';
import { LOST_WORKER_RETRY, NEWS_SIGNAL, searchAttributes } from '../platform/temporal/workflow-options.ts';

const LOOKS_PER_RUN = 200;

/** Between two looks; longer once there were some. */
const REST_MS = 5_000;
const LONG_REST_MS = 30_000;
const QUICK_LOOKS = 20;

/** When the database is away. */
const LOOK_LATER_MS = 30_000;

const newsSignal = defineSignal<[ReportedFailure | null]>(NEWS_SIGNAL);

type Trouble = {
  /** What the last look showed; a text: why it is in no trouble; null: nothing yet. */
  seen: TroubleShown | string | null;
  failure: ReportedFailure | null;
  hasNews: boolean;
  /** An update was done: the next look waits for nothing. */
  isUrgent: boolean;
};

/**
 * Shows an endpoint from its first failed attempt until nothing waits because of its trouble any more.
 *
 *   look ──nothing waits──▶ done
 *    ▲ └──▶ show ──▶ wait: a worker reports a change · a retry or a probe was due · an update was done
 *    └──────────────────┘
 *
 * It owns nothing: cancel and terminate change nothing for what waits, and the next failed attempt starts it again.
 */
export async function endpointTrouble({ endpointId, failure }: EndpointTroubleInput): Promise<string> {
  const trouble: Trouble = { seen: null, failure, hasNews: false, isUrgent: false };
  setHandler(newsSignal, (reported) => {
    trouble.failure = reported ?? trouble.failure;
    trouble.hasNews = true;
  });
  takeUpdates(endpointId, trouble);
  const changed = () => trouble.hasNews || trouble.isUrgent;
  for (let looks = 0; looks < LOOKS_PER_RUN && !workflowInfo().continueAsNewSuggested; looks += 1) {
    trouble.hasNews = false;
    trouble.isUrgent = false;
    const seen = await look(endpointId, trouble.failure);
    trouble.seen = seen ?? trouble.seen;
    if (typeof seen === 'string' && !changed() && allHandlersFinished()) return seen;
    if (seen !== null && typeof seen !== 'string') show(seen);
    const waitMs = seen === null || typeof seen === 'string' ? LOOK_LATER_MS : seen.lookAgainMs;
    const restMs = looks < QUICK_LOOKS ? REST_MS : LONG_REST_MS;
    await condition(() => trouble.isUrgent, restMs);
    await (waitMs === null ? condition(changed) : condition(changed, Math.max(waitMs - restMs, 1)));
  }
  await condition(allHandlersFinished);
  return await continueAsNew<typeof endpointTrouble>({ endpointId, failure: trouble.failure });
}

/** What an operator enters; the UI may send null for nothing. */
type Entered = string | null | undefined;

/** Lets operators do what the buttons of the portal do; what can be of no use by the last look is refused at once. */
function takeUpdates(endpointId: string, trouble: Trouble): void {
  const shown = () => (typeof trouble.seen === 'string' ? null : trouble.seen);
  const refuseIn = (states: string[], why: string) => states.includes(shown()?.state ?? '') && why;
  const take = (
    name: TroubleAction['do'],
    description: string,
    refusal: (entered: Entered) => string | false,
    action: (entered: Entered) => TroubleAction,
  ) => {
    const act = async (entered: Entered): Promise<string> => {
      await condition(() => trouble.seen !== null);
      const done = await doFor(shown()?.wabaId, endpointId, action(entered));
      trouble.isUrgent = true;
      return done;
    };
    const validator = (entered: Entered) => {
      const message = refusal(entered);
      if (message) throw ApplicationFailure.create({ message, type: 'Refused', nonRetryable: true });
    };
    setHandler(defineUpdate<string, [Entered]>(name), act, { description, validator });
  };
  take(
    'retryNow',
    'Attempt now what waits for a retry; while the endpoint is probed, probe now.',
    () => refuseIn(['paused', 'disabled'], 'the endpoint takes nothing: enable it first'),
    () => ({ do: 'retryNow' }),
  );
  take(
    'pause',
    'Let events wait. An optional reason, such as "server migration".',
    (reason) =>
      typeof (reason ?? '') === 'string'
        ? refuseIn(['paused'], 'the endpoint is paused already')
        : 'the reason is a text',
    (reason) => ({ do: 'pause', reason: reason ?? '' }),
  );
  take(
    'enable',
    'Take deliveries again. "send": what waits goes out first; "drop": it is dropped permanently.',
    (waiting) =>
      waiting === 'send' || waiting === 'drop'
        ? refuseIn(['failing', 'recovering', 'retrying'], 'the endpoint takes deliveries already')
        : 'choose "send" or "drop" for what waits',
    (waiting) => ({ do: 'enable', waiting: waiting === 'drop' ? 'drop' : 'send' }),
  );
  take(
    'skipHead',
    'Drop the oldest that failed, or the delivery with this id (dlv_…): the next of its key goes out.',
    (id) =>
      id
        ? !DELIVERY_ID.test(id) && 'the id of a delivery is dlv_ and 32 hex digits'
        : shown()?.head === null && 'nothing waits that could be dropped',
    (id) => ({ do: 'skipHead', deliveryId: id || (shown()?.head ?? '') }),
  );
}

const DELIVERY_ID = /^dlv_[0-9a-f]{32}$/;

async function doFor(wabaId: string | undefined, id: string, action: TroubleAction): Promise<string> {
  if (wabaId === undefined) return 'Nothing waits for this endpoint any more; nothing was changed.';
  const { actOnEndpoint } = proxyActivities<EndpointTroubleActivities>({
    startToCloseTimeout: '10 minutes',
    heartbeatTimeout: '10 seconds',
    retry: LOST_WORKER_RETRY,
    summary: action.do,
  });
  try {
    return await actOnEndpoint(wabaId, id, action);
  } catch (error) {
    // The UI shows the outermost message, which says nothing.
    throw error instanceof ActivityFailure && error.cause instanceof ApplicationFailure ? error.cause : error;
  }
}

/** Null: it could not be looked at now. */
async function look(id: string, failure: ReportedFailure | null): Promise<TroubleShown | string | null> {
  const { lookAtEndpoint } = proxyLocalActivities<EndpointTroubleActivities>({
    startToCloseTimeout: '10 seconds',
    retry: { maximumAttempts: 1 },
    summary: 'look at the endpoint',
  });
  try {
    return await lookAtEndpoint(id, failure);
  } catch (error) {
    if (isCancellation(error)) throw error;
    return null;
  }
}

function show({ details, tenantId, wabaId }: TroubleShown): void {
  setCurrentDetails(details);
  // A run begins with the attribute of its endpoint only.
  const isNew = workflowInfo().typedSearchAttributes.getAll().length < 2;
  if (isNew) upsertSearchAttributes(searchAttributes({ tenantId, wabaId }));
}
