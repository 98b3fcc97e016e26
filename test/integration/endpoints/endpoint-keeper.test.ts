import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { makeEndpointHealth } from '../../../src/engine/deliveries/breaker.ts';
import { TroubleWatch } from '../../../src/engine/deliveries/dispatch/trouble-watch.ts';
import { EndpointLimiter } from '../../../src/engine/deliveries/loop/attempt-limits.ts';
import { startEndpointKeeper } from '../../../src/engine/deliveries/loop/endpoint-keeper.ts';
import { noteQuietChanges } from '../../../src/engine/endpoint/endpoint-changes.ts';
import { updateEndpoint } from '../../../src/features/endpoints/endpoints.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import type { WorkWatch } from '../../../src/platform/loop.ts';
import { listenToDatabase } from '../../../src/platform/postgres/connection.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query, queryColumn } from '../../../src/platform/postgres/sql.ts';
import { makeWorkWatch } from '../../../src/platform/work-watch.ts';
import { startHeartbeat } from '../../../src/worker/heartbeat.ts';
import { ACCOUNT, bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint, testSecretBox } from '../../support/test-accounts.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { eventually } from '../../support/webhook-receiver.ts';

const WABA = '900000000000101';

async function withEndpoint() {
  const { database, url } = await seededWorkerDatabase();
  const { id } = await addEndpoint(database, WABA, 'https://tenant.example/hook');
  await database.raw(
    `update endpoint_health set mode_changed_at = now() - interval '1 hour' where endpoint_id = ${id}`,
  );
  return { database, url, id };
}

function keep(
  database: Database,
  worker: string,
  more: { limiter?: EndpointLimiter; workWatch?: WorkWatch } = {},
) {
  const health = makeEndpointHealth();
  const shared = { processes: 0, isLeader: false };
  const heartbeat = startHeartbeat({
    database,
    worker,
    logger: silentLogger,
    onPeers: ({ count, isLeader }) => {
      shared.processes = count;
      shared.isLeader = isLeader;
    },
  });
  const keeper = startEndpointKeeper({
    database,
    health,
    limiter: new EndpointLimiter(),
    logger: silentLogger,
    isLeader: () => shared.isLeader,
    retryScheduleMs: [5_000],
    disableAfterHours: 120,
    troubleWatch: new TroubleWatch(),
    ...more,
  });
  const stop = async () => {
    await Promise.all([heartbeat.stop(), keeper.stop()]);
  };
  onTestFinished(stop);
  return { health, keeper, stop, shared };
}

const attempt = (ok: boolean) => ({ deliveryId: randomUUID(), isRepetition: false, durationMs: 10, ok });

async function modeOf(database: Database, id: string) {
  const [row] = await query<{ mode: string; mode_reason: string | null }>(
    database,
    'select mode, mode_reason from endpoint_health where endpoint_id = :id',
    { id },
  );
  return row;
}

describe('the endpoint keeper', () => {
  test('stops an endpoint that mostly fails over all processes, where no single one sees enough', async () => {
    const { database, id } = await withEndpoint();
    for (const worker of ['first', 'second', 'third']) {
      const { health } = keep(database, worker);
      for (let n = 0; n < 5; n += 1) expect(health.record(id, attempt(false))).toBe(false);
      health.record(id, attempt(true));
    }
    await eventually('probing', async () => (await modeOf(database, id))?.mode, { is: 'probing' });
    expect((await modeOf(database, id))?.mode_reason).toMatch(/^most attempts fail: \d+ of the last \d+$/);
  });

  test('leaves an endpoint open at which one event fails over and over', async () => {
    const { database, id } = await withEndpoint();
    const { health } = keep(database, 'first');
    for (let n = 0; n < 40; n += 1) health.record(id, { ...attempt(false), isRepetition: n > 0 });
    await eventually(
      'counted',
      async () => (await query(database, 'select 1 from endpoint_minutes where failures = 40')).length > 0,
    );
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect((await modeOf(database, id))?.mode).toBe('open');
  });

  test('leaves an endpoint open that fails now and then', async () => {
    const { database, id } = await withEndpoint();
    const { health } = keep(database, 'first');
    for (let n = 0; n < 40; n += 1) health.record(id, attempt(n % 2 === 0));
    await eventually(
      'counted',
      async () => (await query(database, 'select 1 from endpoint_minutes')).length > 0,
    );
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect((await modeOf(database, id))?.mode).toBe('open');
  });

  test('notes that nothing succeeds, also of an endpoint whose settings somebody holds', async () => {
    const { database, id } = await withEndpoint();
    const other = await addEndpoint(database, ACCOUNT.wabaId, 'https://other.example/hook');
    const failing = async () =>
      (
        await query<{ id: string }>(
          database,
          'select endpoint_id as id from endpoint_health where failing_since is not null order by endpoint_id',
        )
      ).map((endpoint) => endpoint.id);
    const { health } = keep(database, 'first');
    await database.transaction(async (trx) => {
      await query(trx, 'select 1 from webhook_endpoints where id = :id for update', { id });
      for (const failed of [id, other.id]) health.record(failed, attempt(false));
      await eventually('both are noted', failing, { is: [id, other.id], withinMs: 9_000 });
    });
  });

  test('disables an endpoint that has only failed for days, and keeps its events', async () => {
    const { database, id } = await withEndpoint();
    await takeIn(database, bodyOf(ACCOUNT, [textMessage('wamid.DAYS', 'hello')]));
    await database.raw(
      `update endpoint_health set mode = 'probing', failing_since = now() - interval '121 hours'`,
    );
    const { health } = keep(database, 'first');
    health.record(id, attempt(false));
    await eventually('disabled', async () => (await modeOf(database, id))?.mode, {
      is: 'disabled',
    });
    expect(await query(database, 'select 1 from delivery_queue')).toHaveLength(1);
    expect(await changesOf(database)).toEqual(['disabled']);
  });

  const changesOf = async (database: Database) =>
    await queryColumn<string>(database, 'select change from endpoint_changes order by id');

  test('notes of an endpoint with little traffic that it only fails, leaves it open, and notes when it is back', async () => {
    const { database, id } = await withEndpoint();
    const { health } = keep(database, 'first');
    keep(database, 'second');
    for (let n = 0; n < 5; n += 1) health.record(id, attempt(false));
    await eventually(
      'failing since now',
      async () =>
        (await query(database, 'select 1 from endpoint_health where failing_since is not null')).length > 0,
    );
    expect(await changesOf(database)).toEqual([]);
    await database.raw(`update endpoint_health set failing_since = failing_since - interval '2 minutes'`);
    await eventually('noted', async () => (await changesOf(database)).length > 0);
    health.record(id, attempt(true));
    await eventually('noted again', async () => (await changesOf(database)).length > 1);
    expect(await changesOf(database)).toEqual(['failing', 'recovered']);
    expect((await modeOf(database, id))?.mode).toBe('open');
  });

  test('one failed attempt is enough when nothing succeeded for an hour', async () => {
    const { database, id } = await withEndpoint();
    await database.raw(`update endpoint_health set failing_since = now() - interval '61 minutes'`);
    expect(await noteQuietChanges(database, 'failing')).toEqual([id]);
    await database.raw(
      `update endpoint_health set failing_since = now() - interval '59 minutes', failing_notified = false`,
    );
    expect(await noteQuietChanges(database, 'failing')).toEqual([]);
  });

  test('learns of changed limits by their notification, though no watch looks for it', async () => {
    const { database, url, id } = await withEndpoint();
    await database.raw(`update webhook_endpoints set updated_at = now() - interval '1 hour'`);
    const limiter = new EndpointLimiter();
    const watch = makeWorkWatch();
    const { keeper } = keep(database, 'first', { limiter, workWatch: watch });
    const logger = silentLogger;
    const listener = listenToDatabase({
      url,
      applicationName: 'test',
      handlers: { heliograph_endpoints: () => keeper.wake() },
      logger,
    });
    onTestFinished(() => listener.close());
    listener.open();
    await eventually('it listens', () => listener.downMs(), { is: 0 });
    // Its one look finds nothing.
    await watch.start({ database, logger, standsAside: () => true }).stop();
    const urlRules = {
      allowHttp: false,
      guard: makeAddressGuard({ allowCidrs: [] }),
      resolve: async () => [],
    };
    const tools = { database, secretBox: testSecretBox, actor: SYSTEM, urlRules, maxTimeoutMs: 15_000 };
    await updateEndpoint(tools, WABA, id, { maxInFlight: 3 });
    await eventually('the limit is known', () => limiter.free(id), { is: 3 });
  });

  test('leaves the heartbeat alone: a process whose keeper is held up stays alive to the others', async () => {
    const { database, id } = await withEndpoint();
    const { health, shared } = keep(database, 'first');
    await eventually('a heartbeat', () => shared.processes, { is: 1 });
    const seenAt = async () =>
      (await query<{ seenAt: Date }>(database, 'select seen_at as "seenAt" from worker_processes'))[0]
        ?.seenAt;
    await database.transaction(async (trx) => {
      await trx.raw('lock table endpoint_minutes in exclusive mode');
      health.record(id, attempt(false));
      await eventually('the keeper is held up', async () => {
        const held = await query(
          database,
          `select 1 from pg_locks where not granted and relation = 'endpoint_minutes'::regclass
              and database = (select oid from pg_database where datname = current_database())`,
        );
        return held.length > 0;
      });
      const before = await seenAt();
      await eventually('another heartbeat', async () => Number(await seenAt()) > Number(before), 9_000);
    });
  });

  test('tells processes how many share what is allowed to the installation', async () => {
    const { database } = await withEndpoint();
    const first = keep(database, 'first');
    const second = keep(database, 'second');
    await eventually('heard of each other', () =>
      [first, second].every(({ shared }) => shared.processes === 2),
    );
    await second.stop();
    await eventually('heard of its end', () => first.shared.processes, { is: 1 });
  });
});
