import { setTimeout as delay } from 'node:timers/promises';
import type { DrillAccount } from './accounts.ts';
import { expectedAt } from './check-run.ts';
import type { Receivers } from './receivers.ts';
import type { SentBody } from './senders.ts';

type Drained = {
  bodies: readonly SentBody[];
  accounts: readonly DrillAccount[];
  /** `<endpoint> <identity>` of everything taken. */
  taken: ReadonlySet<string>;
  receivers: Receivers;
  openDeliveries: () => Promise<number>;
};

/** What was still open when the wait ended; both 0 after a good run. */
export type Leftovers = { missing: number; openDeliveries: number };

const POLL_MS = 500;
const PRINT_EVERY_POLLS = 20;
/** From then on receivers take everything: what is proved by then need not take longer. */
const BE_GOOD_AFTER_MS = 20_000;

/** Waits until everything acknowledged was taken and the queue is empty, also of what was kept without a 200. */
export async function waitForDeliveries(
  { bodies, accounts, taken, receivers, openDeliveries }: Drained,
  { timeoutMs, print, signal }: { timeoutMs: number; print: (line: string) => void; signal: AbortSignal },
): Promise<Leftovers> {
  const begin = Date.now();
  const expected = accounts.flatMap((account) =>
    account.endpoints.flatMap((endpoint) =>
      expectedAt(
        endpoint,
        bodies.filter(({ wabaId }) => wabaId === account.wabaId),
      ).map(({ identity }) => `${endpoint.index} ${identity}`),
    ),
  );
  let good = false;
  for (let polls = 1; ; polls += 1) {
    signal.throwIfAborted();
    const missing = expected.filter((name) => !taken.has(name)).length;
    const open = await openDeliveries().catch(() => -1);
    const waitedMs = Date.now() - begin;
    if ((missing === 0 && open === 0) || waitedMs > timeoutMs) return { missing, openDeliveries: open };
    if (polls % PRINT_EVERY_POLLS === 0) print(`${missing} deliveries missing, ${open} rows in the queue`);
    if (!good && waitedMs > BE_GOOD_AFTER_MS) {
      good = true;
      receivers.beGood();
    }
    await delay(POLL_MS);
  }
}
