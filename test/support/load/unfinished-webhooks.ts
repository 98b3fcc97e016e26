import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

export type UnfinishedWebhooks = {
  port: number;
  count: number;
  /** The header; null leaves it away. */
  signature: string | null;
  lengthBytes: number;
  /** `fast` sends all but the last byte, together at the rate of a line of 400 Mbit/s; `slow` five bytes a second each. */
  manner: 'fast' | 'slow';
  /** https with a hundred requests per connection. */
  isHttp2: boolean;
};

/**
 * Sends webhooks whose last byte never comes, from a process of low priority, so that they take the time of nobody who
 * is measured. Returns how many of them nobody has ended yet.
 */
export function sendUnfinishedWebhooks(webhooks: UnfinishedWebhooks): () => number {
  let open = webhooks.count;
  const sender = fork(fileURLToPath(new URL('./unfinished-webhooks-process.ts', import.meta.url)), [
    JSON.stringify(webhooks),
  ]);
  onTestFinished(() => void sender.kill('SIGKILL'));
  sender.on('message', () => {
    open -= 1;
  });
  sender.on('error', (error) => {
    throw error;
  });
  return () => open;
}
