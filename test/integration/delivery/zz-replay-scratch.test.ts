import { test } from 'vitest';
import { countReplay, startReplay } from '../../../src/accounts/replays.ts';
import { openQueueLimit } from '../../../src/activities/replay-deliveries/queue-limit.ts';
import { changeReplay, queueReplayPage, settleReplay } from '../../../src/database/replay-steps.ts';
import { findReplay } from '../../../src/database/replays.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testDatabase } from '../../support/test-database.ts';
import { publish, settleLive } from './replay-fixtures.ts';

const WABA = '900000000000101';
test('figures', { timeout: 300_000 }, async () => {
  const { database } = await testDatabase();
  await seedFixtureAccounts(database);
  const { id: endpointId } = await addEndpoint(database, WABA, 'https://a.example/');
  await publish(database, WABA, { count: 5, keys: 5 });
  await settleLive(database, 'failed');
  const t = async (name: string, run: () => Promise<unknown>) => {
    const s = performance.now();
    const r = await run().catch((e) => String(e));
    process.stdout.write(
      `${name} ${(performance.now() - s).toFixed(0)} ms ${JSON.stringify(r)?.slice(0, 200)}\n`,
    );
    return r as never;
  };
  const total = 380_000;
  for (let i = 0; i < total; i += 190_000)
    await t('load', () =>
      database.raw(`
      with ids as (
        select n, (lpad(to_hex((extract(epoch from now()) * 1000)::bigint - 40000000 + n * 40), 12, '0') || '7000' || '8000' || lpad(to_hex(n), 12, '0'))::uuid as id,
               to_timestamp(((extract(epoch from now()) * 1000)::bigint - 40000000 + n * 40) / 1000.0) as at
          from generate_series(${i}, ${i + 189_999}) n
      ), ev as (
        insert into events (day, id, waba_id, tenant_id, phone_number_id, event_type, event_id, lane, sequence, body, occurred_at, created_at)
        select (at at time zone 'utc')::date, id, '${WABA}', 1, '1', 'message', 'k' || n % 50000, 'k' || n % 50000, n / 50000 + 1, 'x', at, at from ids
      )
      insert into deliveries (day, id, waba_id, endpoint_id, event_day, event_uuid, state, created_at)
      select (at at time zone 'utc')::date, id, '${WABA}', ${endpointId}, (at at time zone 'utc')::date, id, 'failed', at from ids`),
    );
  await t('analyze', () => database.raw('analyze'));
  await t('count', () => countReplay({ database }, WABA, { states: ['failed'], to: new Date() }));
  await t('count', () => countReplay({ database }, WABA, { states: ['failed'] }));
  const { replayId } = await t('start', () => startReplay({ database }, WABA, { states: ['failed'] }, 'x'));
  const ids = { wabaId: WABA, replayId, endpointId };
  for (let round = 0; round < 2; round += 1) {
    await t('100 pages', async () => {
      for (let i = 0; i < 100; i += 1) await queueReplayPage(database, ids);
    });
  }
  await t('pause', () => changeReplay(database, ids, 'paused'));
  await t('resume', () => changeReplay(database, ids, 'running'));
  await t('settle', () => settleReplay(database, ids));
  const replay = await findReplay(database, WABA, replayId);
  if (replay === null) return;
  const limit = await t('limit', async () => {
    const l = await openQueueLimit(database, replay, 5000);
    return l;
  });
  void limit;
  const q = await openQueueLimit(database, replay, 5000);
  await t('refresh 100k', () => q.refresh());
  await t('cancel', () => changeReplay(database, ids, 'cancelled'));
});
