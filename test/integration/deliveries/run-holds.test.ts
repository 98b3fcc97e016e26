import { expect, onTestFinished, test } from 'vitest';
import { DeliveryRuns, type RunClient } from '../../../src/engine/deliveries/loop/delivery-runs.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { idleLoop } from '../../support/idle-loop.ts';
import { bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { response } from '../../unit/deliveries/send-results.ts';

const FLOODED = { wabaId: '900000000000101', phoneNumberId: '800000000000111', displayPhoneNumber: '1' };
const OTHER = { wabaId: '900000000000202', phoneNumberId: '800000000000221', displayPhoneNumber: '1' };
const ENDPOINTS = 30;
const EVENTS = 10;

/** What may wait for runs at once in one process. */
const MOST_HELD = 180;

test('a flood at endpoints whose attempts wait for their runs holds a few slots, and nobody else waits for Temporal', async () => {
  const { database } = await seededWorkerDatabase();
  for (let n = 0; n < ENDPOINTS; n += 1)
    await addEndpoint(database, FLOODED.wabaId, `https://a${n}.example/`);
  await database.raw(`update webhook_endpoints set delivery_workflows = 'always'`);
  await addEndpoint(database, OTHER.wabaId, 'https://other.example/');
  const messages = (name: string) =>
    Array.from({ length: EVENTS }, (_, n) => textMessage(`wamid.${name}${n}`, 'x'));
  await takeIn(database, bodyOf(FLOODED, messages('FLOOD')), bodyOf(OTHER, messages('OTHER')));
  const starts: string[] = [];
  const silent: RunClient = {
    start: ({ eventId }) => {
      starts.push(eventId);
      return new Promise(() => undefined);
    },
    end: async () => true,
    wait: async () => undefined,
    cancel: async () => undefined,
  };
  const calm = { note: () => undefined, isCalm: () => false, shareWith: () => undefined };
  const runs = new DeliveryRuns({ calm, onShown: () => undefined, onTrouble: () => undefined });
  runs.connect(silent);
  const sent: string[] = [];
  const sender = {
    send: async ({ url }: { url: string }) => {
      sent.push(url);
      return response(200);
    },
    close: async () => undefined,
  };
  const { loop } = idleLoop({ database, sender, runs });
  onTestFinished(() => loop.drained());
  loop.start();
  const ofOther = () => sent.filter((url) => url.includes('other')).length;
  await eventually('the other tenant has all', async () => ofOther(), { is: EVENTS });
  expect(starts.length).toBeLessThanOrEqual(MOST_HELD);
  await eventually(
    'so have those that waited, without runs',
    async () => sent.length === (ENDPOINTS + 1) * EVENTS,
  );
  await eventually('and all are recorded', async () => {
    return (await query(database, 'select 1 from delivery_queue limit 1')).length === 0;
  });
});
