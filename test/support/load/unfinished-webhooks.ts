import { Worker } from 'node:worker_threads';
import { onTestFinished } from 'vitest';

export type UnfinishedWebhooks = {
  port: number;
  count: number;
  /** The header; null leaves it away. */
  signature: string | null;
  lengthBytes: number;
  /** `fast` sends all but the last byte at once, `slow` five bytes a second. */
  manner: 'fast' | 'slow';
  /** https with a hundred requests per connection. */
  isHttp2: boolean;
};

/**
 * Sends webhooks whose last byte never comes, from a thread, so that they take none of the test's own time. Returns how
 * many of them nobody has ended yet.
 */
export function sendUnfinishedWebhooks(webhooks: UnfinishedWebhooks): () => number {
  let open = webhooks.count;
  const thread = new Worker(new URL('./unfinished-webhooks-thread.ts', import.meta.url), {
    workerData: webhooks,
  });
  onTestFinished(async () => void (await thread.terminate()));
  thread.on('message', () => {
    open -= 1;
  });
  thread.on('error', (error) => {
    throw error;
  });
  return () => open;
}
