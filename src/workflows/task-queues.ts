/** Task queues of one installation; `prefix` is the setting HELIOGRAPH_TEMPORAL_TASK_QUEUE_PREFIX. */
export function taskQueues(prefix: string) {
  const deliveries = `${prefix}-deliveries`;
  const media = `${prefix}-media`;
  return {
    deliveries,
    deliveryRetries: retryQueueOf(deliveries),
    /** One slot per worker process. */
    sessions: sessionQueueOf(deliveries),
    media,
    orders: orderQueueOf(media),
    /** What tenants and operators set going by hand, and what tells them about it: replays, endpoint alerts. */
    operations: `${prefix}-operations`,
  };
}

/** The queue of retries that belongs to a queue of first attempts. */
export function retryQueueOf(deliveries: string): string {
  return `${deliveries}-retries`;
}

/** The queue of sessions that belongs to a queue of first attempts. */
export function sessionQueueOf(deliveries: string): string {
  return `${deliveries}-sessions`;
}

/** Catalog look-ups have a queue of their own beside media, so that slow downloads cannot hold back a cart. */
export function orderQueueOf(media: string): string {
  return `${media}-orders`;
}
