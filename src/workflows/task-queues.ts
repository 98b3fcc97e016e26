/** Task queues of one installation; `prefix` is the setting HELIOGRAPH_TEMPORAL_TASK_QUEUE_PREFIX. */
export function taskQueues(prefix: string) {
  const deliveries = `${prefix}-deliveries`;
  return { deliveries, deliveryRetries: retryQueueOf(deliveries), media: `${prefix}-media` };
}

/** The queue of retries that belongs to a queue of first attempts. */
export function retryQueueOf(deliveries: string): string {
  return `${deliveries}-retries`;
}
