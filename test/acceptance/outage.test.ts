import { describe, expect, test } from 'vitest';
import { received } from './support/received.ts';
import { description } from './support/stack.ts';
import { postUpstream, statusBody, textBody } from './support/upstream.ts';

const LADDER = ['sent', 'delivered', 'read'];

type Kept = { ids: Set<string>; statuses: Map<string, string[]> };

/** Sends messages and status ladders until told to stop; notes what was answered 200, and sends the rest again. */
async function sendWhile(name: string, running: () => boolean): Promise<Kept> {
  const kept: Kept = { ids: new Set(), statuses: new Map() };
  for (let n = 0; running(); n += 1) {
    const id = `wamid.outage-${name}-${n}`;
    if ((await postUpstream(textBody(id, name))) === 200) kept.ids.add(id);
    const statusId = `wamid.outage-${name}-s${n >> 2}`;
    const status = LADDER[n % 4];
    if (status !== undefined && (await postUpstream(statusBody(statusId, status))) === 200) {
      kept.statuses.set(statusId, [...(kept.statuses.get(statusId) ?? []), status]);
    }
    await new Promise((resolve) => setTimeout(resolve, 60));
  }
  return kept;
}

/** Waits until everything that was kept has arrived; fails with what is missing. */
async function everythingArrives(kept: Kept, timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const events = (await received()).map((one) => JSON.parse(one.body));
    const ids = new Set(events.map((event) => event.eventId));
    const seen = new Set(events.map((event) => `${event.eventId} ${event.data.status?.status}`));
    const missing = [
      ...[...kept.ids].filter((id) => !ids.has(id)),
      ...[...kept.statuses].flatMap(([id, list]) =>
        list.map((status) => `${id} ${status}`).filter((status) => !seen.has(status)),
      ),
    ];
    if (missing.length === 0) return;
    if (performance.now() > deadline) throw new Error(`never arrived: ${missing.join(', ')}`);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

async function orderIsKept(kept: Kept): Promise<void> {
  const all = await received();
  for (const [id, sent] of kept.statuses) {
    const arrived = all.filter((one) => JSON.parse(one.body).eventId === id);
    const sequences = arrived.map((one) => Number(one.headers['x-service-sequence']));
    expect(sequences, id).toEqual([...sequences].sort((a, b) => a - b));
    const statuses = [...new Set(arrived.map((one) => JSON.parse(one.body).data.status.status))];
    expect(statuses, id).toEqual(sent);
  }
  const bodies = new Map<string, string>();
  for (const { webhookId, body } of all) {
    expect(bodies.get(webhookId) ?? body).toBe(body);
    bodies.set(webhookId, body);
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A part frozen for a while, then let go; and a part killed, which the supervisor starts again. */
const OUTAGES = {
  frozen: async (part: string) => {
    const pid = description().pids[part] ?? 0;
    process.kill(pid, 'SIGSTOP');
    await pause(4_000);
    process.kill(pid, 'SIGCONT');
  },
  killed: async (part: string) => {
    process.kill(description().pids[part] ?? 0, 'SIGKILL');
    await pause(4_000);
  },
};

describe('while a part is away', () => {
  for (const part of ['minio', 'receiver', 'temporal', 'postgres', 'worker', 'api']) {
    for (const outage of ['frozen', 'killed'] as const) {
      test(`${part} ${outage}: what was answered 200 is delivered afterwards, in order`, async () => {
        let sending = true;
        const sender = sendWhile(`${part}-${outage}`, () => sending);
        await pause(500);
        await OUTAGES[outage](part);
        await pause(1_000);
        sending = false;
        const kept = await sender;
        expect(kept.ids.size).toBeGreaterThan(3);
        await everythingArrives(kept, 90_000);
        await orderIsKept(kept);
      });
    }
  }
});
