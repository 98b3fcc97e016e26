import { describe, expect, test } from 'vitest';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { seededDice } from '../../support/seeded-dice.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import {
  answer,
  type Behaviour,
  eventually,
  type ReceivedWebhook,
  startReceiver,
} from '../../support/webhook-receiver.ts';
import { startWorkerProcess, type WorkerProcess } from '../../support/worker-process.ts';

const WABA = '900000000000101';
const LADDER = ['sent', 'delivered', 'read', 'played'];

/** One upstream body with the given status of several messages. */
function statusBody(messages: readonly number[], status: string): Buffer {
  const statuses = messages.map((n) => ({
    id: `wamid.kill-${n}`,
    status,
    timestamp: '1790000000',
    recipient_id: '12025550143',
  }));
  const metadata = { display_phone_number: '12025550100', phone_number_id: '800000000000111' };
  const value = { messaging_product: 'whatsapp', metadata, statuses };
  const entry = [{ id: WABA, changes: [{ field: 'messages', value }] }];
  return Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }));
}

/** Accepts mostly; fails, hangs beyond the time-out, resets and dawdles else. */
function moody(dice: () => number): Behaviour {
  return (webhook, response) => {
    const mood = dice();
    if (mood < 0.1) return answer(500)(webhook, response);
    if (mood < 0.15) return answer(429, { 'retry-after': '1' })(webhook, response);
    if (mood < 0.2) {
      response.destroy();
      return null;
    }
    if (mood < 0.23) return new Promise((resolve) => response.on('close', () => resolve(null)));
    return new Promise((resolve) => {
      setTimeout(() => resolve(answer(200)(webhook, response)), dice() * 40);
    });
  };
}

/** Keys whose events arrived in another order than they were stored in. */
function disorderedKeys(received: readonly ReceivedWebhook[]): string[] {
  const last = new Map<string, number>();
  const wrong = new Set<string>();
  for (const { headers } of received) {
    const key = String(headers['x-service-event-id']);
    const sequence = Number(headers['x-service-sequence']);
    if (sequence < (last.get(key) ?? 0)) wrong.add(key);
    last.set(key, sequence);
  }
  return [...wrong];
}

describe('workers that are killed', () => {
  test('lose no event and disturb no order, with failing endpoints and two workers on real Temporal', async () => {
    const seed = 20_261_121;
    const dice = seededDice(seed);
    const { database, url } = await seededDatabase();
    const receiver = await startReceiver(moody(dice));
    const { secret } = await addEndpoint(database, WABA, `${receiver.url}/hook`);
    expect(secret).toMatch(/^whsec_/);
    const settings = testSettings(url, { HELIOGRAPH_WEBHOOK_TIMEOUT_MS: '1000' });
    const workers: WorkerProcess[] = [startWorkerProcess(settings), startWorkerProcess(settings)];
    try {
      await Promise.all(workers.map((worker) => worker.ready()));
      const messages = Array.from({ length: 25 }, (_, n) => n);
      for (const [step, status] of LADDER.entries()) {
        await insertBodies(database, [statusBody(messages, status)]);
        await new Promise((resolve) => setTimeout(resolve, 300 + dice() * 700));
        const victim = step % 2;
        await workers[victim]?.kill();
        workers[victim] = startWorkerProcess(settings);
        await workers[victim]?.ready();
      }
      await eventually(
        'every delivery delivered',
        async () =>
          (await query(database, `select 1 from deliveries where state <> 'delivered' limit 1`)).length === 0,
      );
    } finally {
      await Promise.all(workers.map((worker) => worker.kill()));
      await receiver.close();
    }
    const accepted = receiver.received.filter((webhook) => webhook.status === 200);
    const ids = new Set(accepted.map((webhook) => webhook.headers['webhook-id']));
    expect(ids.size).toBe(25 * LADDER.length);
    expect(disorderedKeys(receiver.received)).toEqual([]);
    const bodyOf = new Map<string, string>();
    for (const { headers, body } of receiver.received) {
      const id = String(headers['webhook-id']);
      expect(bodyOf.get(id) ?? body).toBe(body);
      bodyOf.set(id, body);
    }
  });
});
