import type { RetryPolicy, SearchAttributePair } from '@temporalio/common';

const WORKFLOWS_SUFFIX = '-deliveries';

/**
 * Task queues of one installation; `prefix` is the setting HELIOGRAPH_TEMPORAL_TASK_QUEUE_PREFIX. Every workflow runs on
 * `deliveries`, beside the first attempts, because each queue with workflows costs a process another copy of their
 * code; the other queues are for activities, apart so that one kind cannot hold up another.
 */
export function taskQueues(prefix: string) {
  const deliveries = `${prefix}${WORKFLOWS_SUFFIX}`;
  return {
    deliveries,
    deliveryRetries: `${deliveries}-retries`,
    /** Of one worker process, which shows its delivery loop there. */
    session: (worker: string) => `${deliveries}-session-${worker}`,
    media: `${prefix}-media`,
    /** Look-ups of catalogs and phone numbers: slow downloads must not hold back a cart. */
    orders: `${prefix}-media-orders`,
    /** Messages to customers, apart from everything that comes in. */
    sends: `${prefix}-sends`,
    /** What tenants and operators set going by hand, and what tells them about it: replays, alerts, approvals. */
    operations: `${prefix}-operations`,
  };
}

/** The task queues of the installation that a workflow on this queue belongs to. */
export function queuesBeside(workflowTaskQueue: string): ReturnType<typeof taskQueues> {
  return taskQueues(workflowTaskQueue.slice(0, -WORKFLOWS_SUFFIX.length));
}

/** For activities whose failures bring their own waits (nextRetryDelay): this is for a worker that died. */
export const LOST_WORKER_RETRY: RetryPolicy = {
  initialInterval: '1 second',
  backoffCoefficient: 2,
  maximumInterval: '30 seconds',
};

export const NEWS_SIGNAL = 'news';

/** In the memo of a run that sends a broadcast: up to this recipient, in the order of their ids, any may have a message. */
export const SENT_UP_TO = 'sentUpTo';

/** Search attributes by which operators filter workflows, all keywords; registered at start (registerSearchAttributes). */
const NAMES = {
  tenantId: 'HeliographTenantId',
  wabaId: 'HeliographWabaId',
  endpointId: 'HeliographEndpointId',
  eventId: 'HeliographEventId',
  eventType: 'HeliographEventType',
};

export const SEARCH_ATTRIBUTE_NAMES: readonly string[] = Object.values(NAMES);

export function eventQuery(eventIdHash: string): string {
  return `${NAMES.eventId}="${eventIdHash}"`;
}

/** Keyword values are cut by some stores. */
const MAX_VALUE_CHARS = 255;

/** As the client takes them; its module takes long to load, and most commands of the command line have no use for it. */
export function searchAttributes(
  values: Partial<Record<keyof typeof NAMES, string | null>>,
): SearchAttributePair[] {
  return Object.entries(NAMES).flatMap(([member, name]) => {
    const value = values[member as keyof typeof NAMES];
    if (value === undefined || value === null) return [];
    return [{ key: { name, type: 'KEYWORD' }, value: value.slice(0, MAX_VALUE_CHARS) }];
  });
}
