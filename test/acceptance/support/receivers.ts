import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'vitest';
import { PATIENCE_MS } from '../../support/patience.ts';
import { api } from './customer.ts';
import { type ForgetfulProxy, startForgetfulProxy } from './forgetful-proxy.ts';
import { freePortBase } from './free-ports.ts';
import { postUpstream, statusBody, textBody } from './upstream.ts';

/**
 * A receiver of examples/receivers, as a user starts it. Its environment has PORT, HELIOGRAPH_WEBHOOK_SECRET and DATABASE (path of a
 * SQLite file that is not there yet). It takes webhooks at /webhooks of 127.0.0.1.
 */
export type Receiver = {
  command: string;
  args: readonly string[];
  cwd: string;
  env?: Readonly<Record<string, string>>;
  /** Reads the `webhook-id` of all that was handled, in the order in which it was; `handledInSqlite` unless given. */
  handled?: (place: { database: string; url: string }) => string[] | Promise<string[]>;
  /** How long it takes to start, at most. */
  startTimeoutMs?: number;
};

const ENDPOINTS = '/api/external/webhook-endpoints';
const STATUSES = ['sent', 'delivered', 'read'];

/** The `webhook-id` of each row of the table `handled`, which has no unique key, so that nothing hides a repetition. */
function handledInSqlite({ database }: { database: string }): string[] {
  // Not read-only: what a kill left half-written is rolled back by the next to open it.
  const file = new DatabaseSync(database, { timeout: 10_000 });
  try {
    const rows = file.prepare('SELECT webhook_id FROM handled ORDER BY rowid').all();
    return rows.map(({ webhook_id }) => String(webhook_id));
  } finally {
    file.close();
  }
}

/**
 * Sends `events` (a multiple of four) through the gateway to a receiver that is killed again and again, and whose responses get
 * lost now and then. Fails when one is lost, handled twice, confirmed before it is stored, or handled out of order within
 * its `eventId`.
 */
export async function survivesKills(receiver: Receiver, { events = 200, kills = 4 } = {}): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'heliograph-receiver-'));
  const port = await freePortBase();
  const place = { database: join(folder, 'receiver.sqlite'), url: `http://127.0.0.1:${port}` };
  const proxy = await startForgetfulProxy(port);
  const endpoint = await api<{ id: string; secret: string }>('POST', ENDPOINTS, {
    url: `${proxy.url}/webhooks`,
    eventTypes: ['message', 'status'],
  });
  const env = { PORT: String(port), HELIOGRAPH_WEBHOOK_SECRET: endpoint.secret, DATABASE: place.database };
  const process = new KillableReceiver(receiver, env, `${place.url}/webhooks`);
  const handled = async () => await (receiver.handled ?? handledInSqlite)(place);
  const stop = new AbortController();
  let sent: Promise<Set<string>> | undefined;
  try {
    await process.start();
    sent = sendEvents(events, stop.signal);
    for (let kill = 0; kill < kills; kill += 1) {
      await wait(randomInt(100, 900));
      await process.kill();
      if (receiver.handled === undefined) expectAllStored(await handled(), proxy);
      await process.start();
    }
    const ours = await sent;
    await expect
      .poll(async () => new Set(idsOf(await handled(), proxy, ours)).size, { interval: 200 })
      .toBe(events);
    const repeated = [...proxy.arrivals].filter(([id, count]) => count > 1 && isOurs(proxy, ours, id));
    expect(repeated.length, 'the gateway repeated some').toBeGreaterThan(0);
    await process.kill();
    await process.start();
    expectOnceAndInOrder(idsOf(await handled(), proxy, ours), proxy);
  } finally {
    stop.abort();
    await sent?.catch(() => {});
    await api('DELETE', `${ENDPOINTS}/${endpoint.id}`);
    await process.kill();
    await proxy.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Messages of customers, and three statuses each of as many others, which share their eventId; resolves with their upstream ids. */
async function sendEvents(count: number, signal: AbortSignal): Promise<Set<string>> {
  const prefix = `wamid.receiver-${randomBytes(4).toString('hex')}`;
  const ids = new Set<string>();
  for (let n = 0; n < count / 4; n += 1) {
    const [inbound, outbound] = [`${prefix}-in-${n}`, `${prefix}-out-${n}`];
    ids.add(inbound).add(outbound);
    for (const body of [textBody(inbound, 'grüße 👋'), ...STATUSES.map((one) => statusBody(outbound, one))])
      while ((await postUpstream(body)) !== 200) await wait(200, null, { signal });
    await wait(40, null, { signal });
  }
  return ids;
}

type Body = { eventId: string; data: { status?: { status: string } } };

function bodyOf(proxy: ForgetfulProxy, id: string): Body {
  const text = proxy.bodies.get(id);
  if (text === undefined) throw new Error(`the receiver has ${id}, which never came`);
  return JSON.parse(text) as Body;
}

const isOurs = (proxy: ForgetfulProxy, ours: Set<string>, id: string) => ours.has(bodyOf(proxy, id).eventId);

/** Other tests cause events as well. */
function idsOf(handled: readonly string[], proxy: ForgetfulProxy, ours: Set<string>): string[] {
  return handled.filter((id) => isOurs(proxy, ours, id));
}

function expectAllStored(handled: readonly string[], proxy: ForgetfulProxy): void {
  const stored = new Set(handled);
  expect(
    [...proxy.confirmed].filter((id) => !stored.has(id)),
    'confirmed, but not stored',
  ).toEqual([]);
}

function expectOnceAndInOrder(handled: readonly string[], proxy: ForgetfulProxy): void {
  expect(
    handled.filter((id, n) => handled.indexOf(id) !== n),
    'handled twice',
  ).toEqual([]);
  const statuses = handled.map((id) => bodyOf(proxy, id)).filter(({ data }) => data.status !== undefined);
  const byEvent = Object.groupBy(statuses, ({ eventId }) => eventId);
  for (const [eventId, bodies = []] of Object.entries(byEvent))
    expect(
      bodies.map(({ data }) => data.status?.status),
      eventId,
    ).toEqual(STATUSES);
}

/** The process of a receiver, which dies without a chance to clean up. */
class KillableReceiver {
  readonly #receiver: Receiver;
  readonly #env: Record<string, string>;
  readonly #url: string;
  #child: ChildProcess | null = null;
  #printed = '';

  constructor(receiver: Receiver, env: Record<string, string>, url: string) {
    this.#receiver = receiver;
    this.#env = { ...receiver.env, ...env };
    this.#url = url;
  }

  /** Resolves when the receiver refuses what is not signed, with 401. */
  async start(): Promise<void> {
    const { command, args, cwd, startTimeoutMs = PATIENCE_MS } = this.#receiver;
    const env = { ...process.env, ...this.#env };
    // A group of its own: what the command starts dies with it.
    const child = spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        this.#printed = `${this.#printed}${chunk}`.slice(-5_000);
      });
    const forged = { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } };
    const deadline = performance.now() + startTimeoutMs;
    for (;;) {
      const status = await fetch(this.#url, forged).then(
        (response) => response.status,
        () => 0,
      );
      if (status === 401) return;
      if (status !== 0 || child.exitCode !== null || performance.now() > deadline)
        throw new Error(`the receiver responded ${status} to what is not signed:\n${this.#printed}`);
      await wait(20);
    }
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    process.kill(-child.pid, 'SIGKILL');
    await once(child, 'exit');
  }
}
