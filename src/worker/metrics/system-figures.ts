import { Gauge, type Registry } from '@prometheus-io/client';
import { countEndpointModes } from '../../engine/deliveries/backlog.ts';
import type { QueueState } from '../../engine/queue/states.ts';
import { countWabasWithProblem } from '../../features/accounts/followed-numbers.ts';
import { ageSeconds } from '../../ops/health/findings.ts';
import type { OfDatabase } from '../../ops/health/question.ts';
import { ALL, type AnswerTo, type QuestionId } from '../../ops/health/questions.ts';
import { countSealed } from '../../ops/secrets/secret-keys.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { isCanceled, isLockTimeout } from '../../platform/postgres/error-class.ts';
import { recentRead } from '../../platform/postgres/recent-read.ts';
import { query } from '../../platform/postgres/sql.ts';

/** Gauges about all tenants and processes, by the name of their figure; counting of deliveries stops at 20,001. */
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

const QUEUE_STATES: readonly QueueState[] = [
  'queued',
  'unreleased',
  'suspended',
  'due',
  'claimed',
  'retrying',
];

/** With a label; those of its values that are named are shown with 0 too. */
const LABELLED = [
  [
    'openDeliveries',
    'deliveries_pending',
    'Pending deliveries by state of the queue.',
    'state',
    QUEUE_STATES,
  ],
  ['endpoints', 'endpoints', 'Webhook endpoints by mode.', 'mode', ['open', 'probing', 'paused', 'disabled']],
  [
    'storedSecrets',
    'stored_secrets',
    'Stored secrets by the id of the key that encrypted them.',
    'key_id',
    [],
  ],
  [
    'housekeepingFailingSeconds',
    'housekeeping_failing_seconds',
    'For how long each step of housekeeping has failed; 0: its last turn went well.',
    'step',
    [],
  ],
] as const;

/** As they are stored, perhaps for a worker of another version. Ages are 0 where nothing waits. */
export type SystemFigures = Record<(typeof PLAIN)[number][0], number> &
  Record<(typeof LABELLED)[number][0], Readonly<Record<string, number>>>;

/** It reads all secrets, and its answer matters when an operator removes a key: once an hour is enough. */
const recentlySealed = recentRead(3_600_000, countSealed);

type Some = Partial<SystemFigures>;

/** What is no question of health. */
const COUNTED: Readonly<Record<string, (tools: Required<OfDatabase>) => Promise<Some>>> = {
  endpoints: async ({ database }) => ({ endpoints: await countEndpointModes(database) }),
  'WABAs with a problem': async ({ database }) => ({
    wabasWithProblem: await countWabasWithProblem(database),
  }),
  secrets: async ({ pool }) => {
    const storedSecrets: Record<string, number> = {};
    for (const { keyId, count } of await recentlySealed(pool))
      storedSecrets[keyId] = (storedSecrets[keyId] ?? 0) + count;
    return { storedSecrets };
  },
};

const ANSWERED: { readonly [Id in QuestionId]?: (answer: AnswerTo<Id>) => Some } = {
  pending: ({ states }) => ({ openDeliveries: states }),
  oldestPending: (at) => ({ oldestOpenSeconds: ageSeconds(at) }),
  oldestDue: (at) => ({ oldestDueSeconds: ageSeconds(at) }),
  inbox: (counts) => ({ inboxBacklog: counts.new, inboxFailed: counts.failed }),
  oldestBody: (at) => ({ inboxOldestSeconds: ageSeconds(at) }),
  housekeeping: (steps) => {
    const ages = steps.map(({ step, failingSince }) => [step, ageSeconds(failingSince)]);
    return { housekeepingFailingSeconds: Object.fromEntries(ages) };
  },
  awaitingNumber: ({ count, oldestAt }) => ({
    inboxAwaitingNumber: count,
    inboxAwaitingNumberSeconds: ageSeconds(oldestAt),
  }),
  partitions: ({ days, defaultRows }) => ({ defaultPartitionRows: defaultRows, partitionDays: days }),
  schemaState: ({ invalidIndexes }) => ({ invalidIndexes: invalidIndexes.length }),
  expiringKeys: (keys) => ({
    apiKeysExpiring: keys.filter(({ expiresAt }) => expiresAt.getTime() > Date.now()).length,
  }),
  quotas: (share) => ({ quotaUsedRatio: share }),
};

const READERS: [name: string, read: (tools: Required<OfDatabase>) => Promise<Some>][] = [
  ...Object.entries(COUNTED),
  ...(Object.entries(ANSWERED) as [QuestionId, (answer: unknown) => Some][]).map(
    ([id, figuresOf]): (typeof READERS)[number] => [
      id,
      async (tools) => figuresOf(await ALL[id].ask(tools as never)),
    ],
  ),
];

/** Reads them one by one; `slow` names those that take longer than `statementTimeoutMs`. Rejects on any other error. */
export async function readSystemFigures(
  pool: Database,
  statementTimeoutMs: number,
): Promise<{ figures: Partial<SystemFigures>; slow: string[] }> {
  const figures: Partial<SystemFigures> = {};
  const slow: string[] = [];
  for (const [name, read] of READERS) {
    try {
      const some = await pool.transaction(async (database) => {
        await query(database, `select set_config('statement_timeout', :statementTimeoutMs, true)`, {
          statementTimeoutMs: String(statementTimeoutMs),
        });
        return await read({ database, pool });
      });
      Object.assign(figures, some);
    } catch (error) {
      if (!isCanceled(error) && !isLockTimeout(error)) throw error;
      slow.push(name);
    }
  }
  return { figures, slow };
}

/** What a scrape read: null when PostgreSQL did not answer; no figures when none were stored lately. */
type ReadFigures = { figures: Partial<SystemFigures> | null };

/** Shows figures from now on. Gauges without a figure have no value, because the last one would pass for a fresh one. */
type ShowFigures = (read: ReadFigures | null) => void;

/** The gauges of what PostgreSQL knows; they are about all processes together. */
export function makeSystemGauges(registry: Registry): ShowFigures {
  const gauge = (name: string, help: string, ...labelNames: string[]) =>
    new Gauge({ name: `heliograph_${name}`, help, labelNames, registers: [registry] });
  const up = gauge('database_up', '1 when PostgreSQL answered this scrape, otherwise 0.');
  const plain = PLAIN.map(([key, name, help]) => ({ key, gauge: gauge(name, help) }));
  const labelled = LABELLED.map(([key, name, help, label, zeros]) => ({
    key,
    zeros,
    gauge: gauge(name, help, label),
  }));
  return (read) => {
    up.set(read === null ? 0 : 1);
    const figures = read?.figures ?? {};
    for (const { key, gauge } of plain) {
      const value = figures[key];
      if (value === undefined) gauge.remove();
      else gauge.set(value);
    }
    for (const { key, zeros, gauge } of labelled) {
      // A step or a key that nothing needs any more must not stay in sight.
      gauge.reset();
      const values = figures[key];
      if (values === undefined) continue;
      for (const label of new Set([...zeros, ...Object.keys(values)]))
        gauge.labels(label).set(values[label] ?? 0);
    }
  };
}
