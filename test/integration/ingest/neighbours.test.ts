import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { listenInTest } from '../../support/listen.ts';
import { bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const NOISY = account('900000000000101', '800000000000111');
const QUIET = account('900000000000202', '800000000000221');

const FLOOD = 12_000;

/**
 * So many webhooks may arrive between a body of the quiet WABA and its own webhook. Behind the flood it would be most of
 * the flood. It is a count, so a slow machine changes nothing.
 */
const ALLOWED_PASSED = 1_000;

/** The quiet one sends 20 a second for so long; the flood lasts longer. */
const QUIET_BODIES = 80;

function account(wabaId: string, phoneNumberId: string) {
  return { wabaId, phoneNumberId, displayPhoneNumber: '12025550100' };
}

/** How many webhooks had arrived when an event did, by eventId; both WABAs have an endpoint here. */
async function startReceiver() {
  const arrivals = new Map<string, number>();
  const server = createServer((request, response) => {
    arrivals.set(String(request.headers['x-service-event-id']), arrivals.size);
    request.resume().once('end', () => response.end());
  });
  const port = await listenInTest(server);
  return { arrivals, url: `http://127.0.0.1:${port}` };
}

/** As upstream's requests come in side by side. */
async function flood(database: Database): Promise<void> {
  for (let first = 0; first < FLOOD; first += 100) {
    const ids = Array.from({ length: 100 }, (_, n) => `wamid.noisy-${first + n}`);
    await insertBodies(
      database,
      ids.map((id) => bodyOf(NOISY, [textMessage(id, 'hello')])),
    );
  }
}

/** How many webhooks arrive before those of the quiet WABA, each counted from the moment when its body is sent. */
async function passedBy(database: Database, arrivals: Map<string, number>): Promise<number[]> {
  const before = new Map<string, number>();
  for (let n = 0; n < QUIET_BODIES; n += 1) {
    const id = `wamid.quiet-${n}`;
    before.set(id, arrivals.size);
    void insertBodies(database, [bodyOf(QUIET, [textMessage(id, 'hello')])]);
    await sleep(50);
  }
  const hasAll = () => [...before.keys()].every((id) => arrivals.has(id));
  await eventually('the quiet WABA has everything', hasAll);
  return [...before].map(([id, count]) => (arrivals.get(id) ?? Number.NaN) - count);
}

test.each(['while', 'behind'] as const)(
  'a WABA is served %s the flood of another, and not after it',
  async (when) => {
    const { database, url } = await seededDatabase();
    const { arrivals, url: receiverUrl } = await startReceiver();
    for (const { wabaId } of [NOISY, QUIET]) await addEndpoint(database, wabaId, `${receiverUrl}/${wabaId}`);
    const worker = startWorkerProcess(testSettings(url));
    onTestFinished(() => worker.stop());
    await worker.ready();
    const flooded = flood(database);
    if (when === 'behind') await flooded;
    const passed = await passedBy(database, arrivals);
    await flooded;
    await eventually('the flood is delivered', () => arrivals.size, {
      is: FLOOD + QUIET_BODIES,
    });
    if (process.env.HELIOGRAPH_TEST_FIGURES !== undefined)
      process.stderr.write(`passed by: ${passed.toSorted((a, b) => b - a).join(' ')}\n`);
    expect(Math.max(...passed)).toBeLessThanOrEqual(ALLOWED_PASSED);
  },
);
