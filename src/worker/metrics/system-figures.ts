import { Gauge, type Registry } from '@prometheus-io/client';
import {
  countEndpointModes,
  countPending,
  floorOf,
  oldestDueAt,
  oldestPendingAt,
} from '../../engine/deliveries/backlog.ts';
import { readWaitingBodies } from '../../engine/inbox/waiting-bodies.ts';
import type { QueueState } from '../../engine/queue/states.ts';
import { readQuotaUse } from '../../features/accounts/tenant-usage.ts';
import { countInbox, oldestWaitingBodyAt } from '../../ingest/bodies/quarantine.ts';
import { countSealed, type SealedCount } from '../../ops/secrets/secret-keys.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { isCanceled, isLockTimeout } from '../../platform/postgres/error-class.ts';
import { readPartitions } from '../../platform/postgres/partitions.ts';
import { recentRead } from '../../platform/postgres/recent-read.ts';
import { query, queryOne } from '../../platform/postgres/sql.ts';
import { listHousekeepingSteps } from '../../platform/postgres/worker-processes.ts';

/** What waits, over all tenants and processes. Ages are 0 where nothing waits. */
export type SystemFigures = {
  /** By state of the queue; counting stops at 20,001 in all. */
  openDeliveries: Readonly<Record<string, number>>;
  oldestOpenSeconds: number;
  oldestDueSeconds: number;
  endpoints: Readonly<Record<string, number>>;
  inboxBacklog: number;
  inboxOldestSeconds: number;
  inboxFailed: number;
  storedSecrets: Readonly<Record<string, number>>;
  /** Since when each step of housekeeping has failed, in seconds; 0 when its last turn went well. */
  housekeepingFailingSeconds: Readonly<Record<string, number>>;
  inboxAwaitingNumber: number;
  inboxAwaitingNumberSeconds: number;
  quotaUsedRatio: number;
  /** Rows in default partitions; counting stops at 10,001 per table. */
  defaultPartitionRows: number;
  partitionDays: number;
  invalidIndexes: number;
  /** Keys of tenants that work and end within 14 days. */
  apiKeysExpiring: number;
  /** WABAs whose numbers upstream would not list at the last attempt: mostly the access token is at fault. */
  wabasWithProblem: number;
};

/** It reads all secrets, and its answer matters when an operator removes a key: once an hour is enough. */
const recentlySealed = recentRead(3_600_000, countSealed);

type Reader = (trx: Transaction, database: Database) => Promise<Partial<SystemFigures>>;

/** Each is read by itself, so that one that takes too long costs no other. */
const READERS: Readonly<Record<string, Reader>> = {
  'pending deliveries': async (trx) => ({ openDeliveries: (await countPending(trx)).states }),
  'oldest pending delivery': async (trx, database) => ({
    oldestOpenSeconds: ageSeconds(await oldestPendingAt(trx, floorOf(database))),
  }),
  'oldest due delivery': async (trx) => ({ oldestDueSeconds: ageSeconds(await oldestDueAt(trx)) }),
  endpoints: async (trx) => ({ endpoints: await countEndpointModes(trx) }),
  inbox: async (trx) => {
    const counts = await countInbox(trx, ['new', 'failed']);
    return { inboxBacklog: counts.new ?? 0, inboxFailed: counts.failed ?? 0 };
  },
  'oldest body': async (trx) => ({ inboxOldestSeconds: ageSeconds(await oldestWaitingBodyAt(trx)) }),
  secrets: async (_trx, database) => ({ storedSecrets: sumByKey(await recentlySealed(database)) }),
  housekeeping: async (trx) => {
    const steps = await listHousekeepingSteps(trx);
    return {
      housekeepingFailingSeconds: Object.fromEntries(
        steps.map(({ step, failingSince }) => [step, ageSeconds(failingSince)]),
      ),
    };
  },
  'bodies that wait for a number': async (trx) => {
    const { count, oldestAt } = await readWaitingBodies(trx);
    return { inboxAwaitingNumber: count, inboxAwaitingNumberSeconds: ageSeconds(oldestAt) };
  },
  upkeep: readUpkeep,
  quotas: async (trx) => ({ quotaUsedRatio: await readQuotaUse(trx) }),
};

/** Reads them one by one; `slow` names those that take longer than `statementTimeoutMs`. Rejects on any other error. */
export async function readSystemFigures(
  database: Database,
  statementTimeoutMs: number,
): Promise<{ figures: Partial<SystemFigures>; slow: string[] }> {
  const figures: Partial<SystemFigures> = {};
  const slow: string[] = [];
  for (const [name, read] of Object.entries(READERS)) {
    try {
      const some = await database.transaction(async (trx) => {
        await query(trx, `select set_config('statement_timeout', :statementTimeoutMs, true)`, {
          statementTimeoutMs: String(statementTimeoutMs),
        });
        return await read(trx, database);
      });
      Object.assign(figures, some);
    } catch (error) {
      if (!isCanceled(error) && !isLockTimeout(error)) throw error;
      slow.push(name);
    }
  }
  return { figures, slow };
}

/** What needs an operator before something breaks. */
async function readUpkeep(database: Database): Promise<Partial<SystemFigures>> {
  const { defaultRows, days } = await readPartitions(database);
  const figures = await queryOne<Partial<SystemFigures>>(
    database,
    `select (select count(*)::integer from pg_index where not indisvalid) as "invalidIndexes",
            (select count(*)::integer from api_keys where revoked_at is null
                and expires_at between now() and now() + interval '14 days') as "apiKeysExpiring",
            (select count(*)::integer from wabas
              where removed_at is null and numbers_problem is not null) as "wabasWithProblem"`,
  );
  return { ...figures, defaultPartitionRows: defaultRows, partitionDays: days };
}

function sumByKey(counts: readonly SealedCount[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const { keyId, count } of counts) sums[keyId] = (sums[keyId] ?? 0) + count;
  return sums;
}

function ageSeconds(at: Date | null): number {
  return at === null ? 0 : Math.max(0, Date.now() - at.getTime()) / 1_000;
}

const DELIVERY_STATES: readonly QueueState[] = [
  'queued',
  'unreleased',
  'suspended',
  'due',
  'claimed',
  'retrying',
];
const ENDPOINT_MODES = ['open', 'probing', 'paused', 'disabled'];

const PLAIN = [
  ['oldestOpenSeconds', 'deliveries_oldest_pending_seconds', 'Age of the oldest pending delivery.'],
  ['oldestDueSeconds', 'deliveries_oldest_due_seconds', 'Age of the oldest delivery that is due.'],
  ['inboxBacklog', 'inbox_backlog', 'Upstream bodies that wait for intake.'],
  ['inboxOldestSeconds', 'inbox_oldest_pending_seconds', 'Age of the oldest of them.'],
  ['inboxFailed', 'inbox_failed', 'Upstream bodies whose intake failed.'],
  ['inboxAwaitingNumber', 'inbox_awaiting_number', 'Upstream bodies that wait for a phone number.'],
  ['inboxAwaitingNumberSeconds', 'inbox_awaiting_number_oldest_seconds', 'Age of the oldest of them.'],
  ['quotaUsedRatio', 'tenant_quota_used_ratio', 'Largest share of a quota that any tenant has used.'],
  ['defaultPartitionRows', 'default_partition_rows', 'Rows that no partition of a day took.'],
  ['partitionDays', 'partition_days', 'Days from today on for which every table has its partition.'],
  ['invalidIndexes', 'invalid_indexes', 'Indexes that no query uses, because making them was cut off.'],
  ['apiKeysExpiring', 'api_keys_expiring', 'API keys that end within 14 days.'],
  ['wabasWithProblem', 'wabas_with_problem', 'WABAs whose phone numbers upstream does not list at present.'],
] as const;

/** What a scrape read: null when PostgreSQL did not answer; no figures when none were stored lately. */
type ReadFigures = { figures: Partial<SystemFigures> | null };

/** Shows figures from now on. Gauges without a figure have no value, because the last one would pass for a fresh one. */
type ShowFigures = (read: ReadFigures | null) => void;

/** The gauges of what PostgreSQL knows; they are about all processes together. */
export function makeSystemGauges(registry: Registry): ShowFigures {
  const gauge = (name: string, help: string, ...labelNames: string[]) =>
    new Gauge({ name: `heliograph_${name}`, help, labelNames, registers: [registry] });
  const up = gauge('database_up', '1 when PostgreSQL answered this scrape, otherwise 0.');
  const open = gauge('deliveries_pending', 'Pending deliveries by state of the queue.', 'state');
  const endpoints = gauge('endpoints', 'Webhook endpoints by mode.', 'mode');
  const secretsHelp = 'Stored secrets by the id of the key that encrypted them.';
  const secrets = gauge('stored_secrets', secretsHelp, 'key_id');
  const housekeepingHelp = 'For how long each step of housekeeping has failed; 0: its last turn went well.';
  const housekeeping = gauge('housekeeping_failing_seconds', housekeepingHelp, 'step');
  const plain = PLAIN.map(([key, name, help]) => ({ key, gauge: gauge(name, help) }));
  return (read) => {
    up.set(read === null ? 0 : 1);
    const figures = read?.figures ?? {};
    const { openDeliveries, endpoints: modes } = figures;
    for (const state of DELIVERY_STATES) show(open, openDeliveries && (openDeliveries[state] ?? 0), state);
    for (const mode of ENDPOINT_MODES) show(endpoints, modes && (modes[mode] ?? 0), mode);
    // A key that nothing needs any more must not stay in sight.
    secrets.reset();
    for (const [key, count] of Object.entries(figures.storedSecrets ?? {})) show(secrets, count, key);
    housekeeping.reset();
    for (const [step, seconds] of Object.entries(figures.housekeepingFailingSeconds ?? {}))
      housekeeping.labels(step).set(seconds);
    for (const { key, gauge } of plain) {
      const value = figures[key];
      if (value === undefined) gauge.remove();
      else gauge.set(value);
    }
  };
}

function show(gauge: Gauge<string>, value: number | undefined, label: string): void {
  if (value === undefined) gauge.remove(label);
  else gauge.labels(label).set(value);
}
