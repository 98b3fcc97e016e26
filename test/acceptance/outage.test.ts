import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/webhook-receiver.ts';
import { admin, description } from './support/stack.ts';
import { startTenantServer, type TenantServer } from './support/tenant-server.ts';
import { postUpstream, statusBody, textBody } from './support/upstream.ts';

const LADDER = ['sent', 'delivered', 'read'];

type Kept = { ids: Set<string>; statuses: Map<string, string[]> };

let tenant: TenantServer;

beforeAll(async () => {
  tenant = await startTenantServer();
  await admin('endpoint', 'add', '--waba', '900000000000101', '--url', `${tenant.url}/hook`);
});

afterAll(() => tenant.goAway());

/** Sends messages and status ladders until told to stop; notes in `kept` what was answered 200. */
async function sendWhile(name: string, running: () => boolean, kept: Kept): Promise<void> {
  for (let n = 0; running(); n += 1) {
    const id = `wamid.outage-${name}-${n}`;
    if ((await postUpstream(textBody(id, name))) === 200) kept.ids.add(id);
    const statusId = `wamid.outage-${name}-s${n >> 2}`;
    const status = LADDER[n % 4];
    if (status !== undefined && (await postUpstream(statusBody(statusId, status))) === 200) {
      kept.statuses.set(statusId, [...(kept.statuses.get(statusId) ?? []), status]);
    }
    await pause(60);
  }
}

function missingFrom(kept: Kept): string[] {
  const events = tenant.accepted().map((one) => JSON.parse(one.body));
  const ids = new Set(events.map((event) => event.eventId));
  const seen = new Set(events.map((event) => `${event.eventId} ${event.data.status?.status}`));
  const statuses = [...kept.statuses].flatMap(([id, list]) => list.map((status) => `${id} ${status}`));
  return [...[...kept.ids].filter((id) => !ids.has(id)), ...statuses.filter((status) => !seen.has(status))];
}

/** Waits until everything that was kept has arrived; fails with what is missing. */
async function everythingArrives(kept: Kept, timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (let missing = missingFrom(kept); missing.length > 0; missing = missingFrom(kept)) {
    if (performance.now() > deadline) throw new Error(`never arrived: ${missing.join(', ')}`);
    await pause(250);
  }
}

function orderIsKept(kept: Kept): void {
  const all = tenant.received();
  for (const [id, sent] of kept.statuses) {
    const arrived = all.filter((one) => JSON.parse(one.body).eventId === id);
    const sequences = arrived.map((one) => Number(one.headers['x-service-sequence']));
    expect(sequences, id).toEqual([...sequences].sort((a, b) => a - b));
    const statuses = [...new Set(arrived.map((one) => JSON.parse(one.body).data.status.status))];
    expect(
      statuses.filter((status) => sent.includes(status)),
      id,
    ).toEqual(sent);
  }
  const bodies = new Map<string, string>();
  for (const { headers, body } of all) {
    const id = String(headers['webhook-id']);
    expect(bodies.get(id) ?? body).toBe(body);
    bodies.set(id, body);
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const OUTAGE_MS = 4_000;

const OUTAGES: Record<string, (part: string) => Promise<void>> = {
  frozen: async (part) => {
    const pid = description().pids[part] ?? 0;
    process.kill(pid, 'SIGSTOP');
    await pause(OUTAGE_MS);
    process.kill(pid, 'SIGCONT');
  },
  // The supervisor starts it again by itself.
  killed: async (part) => {
    const pid = description().pids[part] ?? 0;
    process.kill(pid, 'SIGKILL');
    await eventually('it runs again', () => ![pid, undefined].includes(description().pids[part]));
  },
  'that answers nothing': async () => {
    tenant.hang(true);
    await pause(OUTAGE_MS);
    tenant.hang(false);
  },
  'that refuses connections': async () => {
    await tenant.goAway();
    await pause(OUTAGE_MS);
    await tenant.comeBack();
  },
};

const CASES = [
  ...['minio', 'temporal', 'postgres', 'worker', 'api'].flatMap((part) => [
    [part, 'frozen'] as const,
    [part, 'killed'] as const,
  ]),
  ['a tenant server', 'that answers nothing'] as const,
  ['a tenant server', 'that refuses connections'] as const,
];

describe('while a part is away', () => {
  test.each(CASES)('%s %s: what was answered 200 arrives afterwards, in order', async (part, outage) => {
    let sending = true;
    const kept: Kept = { ids: new Set(), statuses: new Map() };
    const sender = sendWhile(`${part}-${outage}`.replaceAll(' ', '-'), () => sending, kept);
    await pause(500);
    await OUTAGES[outage]?.(part);
    await pause(250);
    const answeredBefore = kept.ids.size;
    const deadline = performance.now() + 60_000;
    while (kept.ids.size <= answeredBefore + 3 && performance.now() < deadline) await pause(50);
    sending = false;
    await sender;
    expect(kept.ids.size).toBeGreaterThan(answeredBefore + 3);
    const since = performance.now();
    await everythingArrives(kept, 90_000);
    process.stdout.write(`${part} ${outage}: all there after ${Math.round(performance.now() - since)} ms\n`);
    orderIsKept(kept);
  });
});
