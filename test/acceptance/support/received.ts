import { PATIENCE_MS } from '../../support/patience.ts';
import { description } from './stack.ts';

/** A webhook as the sample tenant got it. */
export type ReceivedWebhook = {
  n: number;
  name: string;
  receivedAt: string;
  webhookId: string;
  headers: Record<string, string>;
  body: string;
  verified: boolean;
  duplicate: boolean;
};

/** Everything the sample tenant received, oldest first. */
export async function received(): Promise<ReceivedWebhook[]> {
  const all: ReceivedWebhook[] = [];
  for (;;) {
    const since = all.at(-1)?.n ?? 0;
    const response = await fetch(`${description().receiverUrl}/received?since=${since}`);
    const { data } = (await response.json()) as { data: ReceivedWebhook[] };
    if (data.length === 0) return all;
    all.push(...data);
  }
}

/** Waits for the webhook that `wanted` accepts. */
export async function webhook(
  what: string,
  wanted: (one: ReceivedWebhook) => boolean,
  timeoutMs = PATIENCE_MS,
): Promise<ReceivedWebhook> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const found = (await received()).find(wanted);
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`no webhook within ${timeoutMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/**
 * Waits until the sample tenant has got nothing for `quietMs`, `timeoutMs` at most: what earlier tests sent is through
 * then but for retries, and the next delivery has a workflow of its own, because starts are left in the allowance.
 */
export async function noMoreWebhooks(quietMs = 3_000, timeoutMs = 20_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  let count = (await received()).length;
  let sinceMs = performance.now();
  while (performance.now() - sinceMs < quietMs) {
    if (performance.now() > deadline) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
    const next = (await received()).length;
    if (next !== count) sinceMs = performance.now();
    count = next;
  }
}
