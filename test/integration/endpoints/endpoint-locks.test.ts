import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { lockHealth, noteWorking } from '../../../src/engine/endpoint/endpoint-health.ts';
import { claimProbes } from '../../../src/engine/queue/claim.ts';
import { limitWebhookTargets } from '../../../src/features/endpoints/webhook-targets.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { addEndpoints, queueEach } from '../../support/many-endpoints.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { eventually } from '../../support/webhook-receiver.ts';

const WABA = '900000000000101';

/** Two endpoints, of which the second stands first on disk. */
async function twoEndpoints() {
  const { database } = await seededWorkerDatabase();
  const urls = ['https://low.example', 'https://high.example'];
  const [low = '', high = ''] = await addEndpoints(database, WABA, { urls, ratePerSecond: null });
  await execute(database, 'update webhook_endpoints set updated_at = now() where id = :low', { low });
  await execute(database, 'update endpoint_health set probe_failures = 0 where endpoint_id = :low', { low });
  return { database, low, high };
}

const SETTINGS = 'select 1 from webhook_endpoints where id = :id for no key update';
const HEALTH = 'select 1 from endpoint_health where endpoint_id = :id for no key update';

/** Holds the row of an endpoint until `release`. */
async function hold(
  database: Database,
  id: string,
  text = SETTINGS,
): Promise<{ release: () => Promise<void> }> {
  const ends = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const holding = database.transaction(async (trx) => {
    await query(trx, text, { id });
    held.resolve();
    await ends.promise;
  });
  await held.promise;
  const release = async () => {
    ends.resolve();
    await holding;
  };
  onTestFinished(release);
  return { release };
}

const waitsForLock = (database: Database) =>
  eventually('it waits for the lock', async () => {
    const waiting = await query(
      database,
      `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return waiting.length > 0;
  });

type Writer = (database: Database, ids: readonly string[]) => Promise<unknown>;

const WRITERS: [string, string, Writer][] = [
  [
    'lists of webhook targets',
    SETTINGS,
    (database) => limitWebhookTargets({ database, actor: SYSTEM }, WABA, { deny: ['203.0.113.0/24'] }),
  ],
  [
    'counts of attempts',
    HEALTH,
    (database, ids) => database.transaction((trx) => noteWorking(trx, new Map(ids.map((id) => [id, false])))),
  ],
  [
    'attempts that are recorded',
    HEALTH,
    (database, ids) => database.transaction((trx) => lockHealth(trx, ids)),
  ],
];

describe('who changes several endpoints', () => {
  // In another order, both could wait for each other.
  test.each(WRITERS)('locks them in the order of their ids: %s', async (_, text, write) => {
    const { database, low, high } = await twoEndpoints();
    const { release } = await hold(database, low, text);
    const writing = write(database, [high, low]);
    await waitsForLock(database);
    await expect(query(database, `${text} nowait`, { id: high })).resolves.toHaveLength(1);
    await release();
    await writing;
  });

  test('waits for none: counts of attempts', async () => {
    const { database, low, high } = await twoEndpoints();
    await hold(database, low);
    const failing = new Map([low, high].map((id) => [id, false]));
    await database.transaction((trx) => noteWorking(trx, failing));
    const noted = await query(database, 'select from endpoint_health where failing_since is not null');
    expect(noted).toHaveLength(2);
  });

  test('does not wait long for a process that froze while it recorded attempts', async () => {
    const { database, low, high } = await twoEndpoints();
    const { promise: thaws, resolve: thaw } = Promise.withResolvers<void>();
    const { promise: isFrozen, resolve: froze } = Promise.withResolvers<void>();
    const frozen = database.transaction(async (trx) => {
      await lockHealth(trx, [low]);
      froze();
      await thaws;
    });
    onTestFinished(() => thaw());
    await isFrozen;
    const recorded = database.transaction((trx) => lockHealth(trx, [low, high])).then(() => true);
    // Well below the time after which a lock is given up.
    expect(await Promise.race([recorded, sleep(9_000, false)])).toBe(true);
    thaw();
    await expect(frozen).rejects.toThrow(/idle-in-transaction|connection/i);
  });

  test('passes over the one whose health is being changed: probes', async () => {
    const { database, low, high } = await twoEndpoints();
    await execute(
      database,
      `update endpoint_health set mode = 'probing', next_probe_at = now() where endpoint_id = any (:lows)`,
      { lows: [low, high] },
    );
    await queueEach(database, WABA, [low, high], (n) => `lane ${n}`);
    await hold(database, low, HEALTH);
    const claim = { limit: 20, token: randomUUID(), leaseMs: 60_000 };
    const deliveries = await claimProbes(database, claim);
    expect(deliveries.map(({ endpointId }) => endpointId)).toEqual([high]);
  });
});
