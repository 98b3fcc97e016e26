import {
  defineSearchAttributeKey,
  type RetryPolicy,
  SearchAttributeType,
  TypedSearchAttributes,
} from '@temporalio/common';

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

/** Search attributes by which operators filter workflows; registered at start (registerSearchAttributes). */
const KEYS = {
  tenantId: defineSearchAttributeKey('HeliographTenantId', SearchAttributeType.KEYWORD),
  wabaId: defineSearchAttributeKey('HeliographWabaId', SearchAttributeType.KEYWORD),
  endpointId: defineSearchAttributeKey('HeliographEndpointId', SearchAttributeType.KEYWORD),
  eventId: defineSearchAttributeKey('HeliographEventId', SearchAttributeType.KEYWORD),
  eventType: defineSearchAttributeKey('HeliographEventType', SearchAttributeType.KEYWORD),
};

export const SEARCH_ATTRIBUTE_NAMES: readonly string[] = Object.values(KEYS).map((key) => key.name);

export function eventQuery(eventIdHash: string): string {
  return `${KEYS.eventId.name}="${eventIdHash}"`;
}

/** Keyword values are cut by some stores. */
const MAX_VALUE_CHARS = 255;

export function searchAttributes(
  values: Partial<Record<keyof typeof KEYS, string | null>>,
): TypedSearchAttributes {
  const pairs = Object.entries(KEYS).flatMap(([name, key]) => {
    const value = values[name as keyof typeof KEYS];
    return value === undefined || value === null ? [] : [{ key, value: value.slice(0, MAX_VALUE_CHARS) }];
  });
  return new TypedSearchAttributes(pairs);
}
