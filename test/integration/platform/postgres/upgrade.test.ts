import { randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { enableEndpoint } from '../../../../src/features/endpoints/endpoint-modes.ts';
import { switchReplay } from '../../../../src/features/replays/replays.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { migrate } from '../../../../src/platform/postgres/migrate.ts';
import { MIGRATIONS } from '../../../../src/platform/postgres/migrations.ts';
import { queryColumn, queryValue } from '../../../../src/platform/postgres/sql.ts';
import {
  earlierDatabase,
  insertOrder,
  insertReplay,
  keepBody,
  publish,
  publishAttempted,
  stepAside,
  switchOff,
  WABA,
} from '../../../support/earlier-database.ts';
import { ACCOUNT, bodyOf, messageStatus, textMessage } from '../../../support/load/upstream-bodies.ts';
import { schemaDigest } from '../../../support/schema-digest.ts';
import { drawIdsApart, testDatabase } from '../../../support/test-database.ts';
import { testSettings } from '../../../support/test-settings.ts';
import { eventually, type ReceivedWebhook, startReceiver } from '../../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../../support/worker-process.ts';

/** Each lane has events for all three endpoints, the first of which takes deliveries. */
async function fill(
  database: Database,
  endpoints: readonly string[],
): Promise<{ held: string; running: string }> {
  const [open = '', paused = '', probing = ''] = endpoints;
  const to = (lane: string, type = 'status') => ({ endpoints, lane, type });

  for (let n = 1; n <= 3; n += 1) await publish(database, to('due'));
  await publish(database, { ...to('claimed'), claim: { token: randomUUID(), leaseMs: 2_000 } });
  await publish(database, to('claimed'));
  const retry = { nextState: 'retrying', delayMs: 2_000 } as const;
  await publishAttempted(database, to('retrying'), retry);
  await publish(database, to('retrying'));
  const shown = { ...retry, run: 'room', workflowId: `delivery/${open}/gone` };
  await publishAttempted(database, to('shown'), shown);
  await publish(database, to('shown'));

  const aside = await publishAttempted(database, to('aside'), { ...retry, delayMs: 5_000 });
  for (let n = 2; n <= 3; n += 1) await publish(database, to('aside'));
  for (const delivery of aside.deliveries.slice(0, 1)) await stepAside(database, delivery);

  await insertOrder(database, await publish(database, { ...to('catalog', 'order'), body: null }));
  await publish(database, to('catalog', 'order'));

  const past = [];
  for (let n = 1; n <= 4; n += 1) {
    const { deliveries } = await publishAttempted(database, to('past'), { nextState: null });
    past.push(...deliveries.slice(0, 1));
  }
  const held = await insertReplay(database, past, { state: 'paused', queued: 4 });
  const running = await insertReplay(database, past, { state: 'running', queued: 2 });

  await switchOff(database, paused, 'paused');
  await switchOff(database, probing, 'probing');
  for (const status of ['delivered', 'read']) {
    await keepBody(database, bodyOf(ACCOUNT, [messageStatus('due', status)]));
  }
  await keepBody(database, bodyOf(ACCOUNT, [textMessage('wamid.KEPT', 'x')]));
  return { held, running };
}

/** Of each event its sequence, by what it was sent for, in the order of arrival. */
async function arrivals(database: Database, received: readonly ReceivedWebhook[]) {
  const replays = await queryValue<Record<string, string>>(
    database,
    `select jsonb_object_agg('dlv_' || replace(id::text, '-', ''), replay_id) from deliveries where replay_id is not null`,
  );
  const found: Record<string, number[]> = {};
  for (const { path, headers } of received) {
    const replay = replays?.[String(headers['x-service-delivery-id'])];
    const kind = replay === undefined ? '' : ` in replay ${replay}`;
    const name = `${path} ${headers['x-service-event-id']}${kind}`;
    found[name] = [...(found[name] ?? []), Number(headers['x-service-sequence'])];
  }
  return found;
}

/** How many events each lane has. */
const LANES = { due: 5, claimed: 2, retrying: 2, shown: 2, aside: 3, catalog: 2, past: 4, 'wamid.KEPT': 1 };

const inOrder = (path: string, lanes: Record<string, number>) =>
  Object.fromEntries(
    Object.entries(lanes).map(([lane, count]) => [
      `${path} ${lane}`,
      Array.from({ length: count }, (_, n) => n + 1),
    ]),
  );

/** Functions that only processes of the release before call, which may run beside this one. */
const CALLED_BY_EARLIER = /\b(?:apply_order_scope|promote_next)\(/;

test('a database of 0.1.0 gets the schema of a new one', async () => {
  const { database } = await earlierDatabase([]);
  await migrate(database);
  const { sequences: _, functions, ...upgraded } = await schemaDigest(database);
  const fresh = await schemaDigest((await testDatabase()).database);
  expect(fresh).toMatchObject(upgraded);
  expect(functions.filter((line) => !CALLED_BY_EARLIER.test(line))).toEqual(fresh.functions);
});

test('a database of 0.1.0 with deliveries in every state is upgraded, and each goes out once and in order', async () => {
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const paths = ['/open', '/paused', '/probing'];
  const { database, url, endpoints } = await earlierDatabase(paths.map((path) => receiver.url + path));
  await drawIdsApart(database);
  const { held, running } = await fill(database, endpoints);
  const states = await queryColumn(database, 'select distinct state from delivery_queue order by 1');
  expect(states).toEqual(['claimed', 'due', 'queued', 'retrying', 'suspended', 'unreleased']);

  expect(await migrate(database)).toEqual([...Object.keys(MIGRATIONS).slice(1), 'functions.sql']);
  const worker = startWorkerProcess(testSettings(url));
  onTestFinished(worker.stop);
  await worker.ready();
  const audited = { database, actor: SYSTEM };
  await enableEndpoint(audited, WABA, { id: endpoints[1] ?? '', waiting: 'send', by: 'a test' });
  await switchReplay(audited, WABA, held, 'resume');

  const left = `select (select count(*) from delivery_queue) + (select count(*) from inbox where state = 'new')
                     + (select count(*) from replays where state <> 'done') + (select count(*) from workflow_tasks)`;
  await eventually('everything is delivered', () => queryValue<string>(database, left), { is: '0' });
  const found = await arrivals(database, receiver.received);
  const { past, aside, ...toOpen } = LANES;
  const inReplays = { [`past in replay ${held}`]: past, [`past in replay ${running}`]: past };
  // What stepped aside goes by itself, at any time.
  const steppedAside = (name: string, sequence: number) => name === '/open aside' && sequence === 1;
  const inLanes = Object.entries(found).map(([name, sequences]) => [
    name,
    sequences.filter((sequence) => !steppedAside(name, sequence)),
  ]);
  expect(found['/open aside']).toHaveLength(aside);
  expect(Object.fromEntries(inLanes)).toEqual({
    ...inOrder('/open', { ...toOpen, ...inReplays }),
    '/open aside': [2, 3],
    ...inOrder('/paused', LANES),
    ...inOrder('/probing', LANES),
  });
  expect(await queryColumn(database, `select distinct state from deliveries`)).toEqual(['delivered']);
});
