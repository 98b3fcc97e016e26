import { passSequences } from '../../engine/queue/passed-numbers.ts';
import { askForAllNumbersAnew } from '../../features/accounts/followed-numbers.ts';
import { passOrderNumbers } from '../../features/accounts/order-numbers.ts';
import {
  listIdSequences,
  passIds,
  readGreatestId,
  readLastId,
} from '../../platform/postgres/id-sequences.ts';
import { ensurePartitions, readPartitions } from '../../platform/postgres/partitions.ts';
import { taskQueues } from '../../platform/temporal/workflow-options.ts';
import { listWorkflows } from '../../platform/temporal/workflow-states.ts';
import { ERASURE_WORKFLOW_TYPES, eraseAgain, findLostErasure } from '../erasures/lost-erasures.ts';
import type { Look, ReconcileTools, Tally } from './findings.ts';

/** What is drawn from the tables must be right before anything else is written. */
export const TABLE_LOOKS: readonly Look[] = [
  {
    kind: 'sequence_behind_table',
    what: 'ids that would be drawn twice, because their sequence is behind the table',
    remedy: 'the sequence goes on behind the table',
    run: lookAtSequences,
  },
  {
    kind: 'ids_given_out',
    what: 'ids that Temporal knows and the database has not drawn yet: it was restored to an earlier moment',
    remedy: 'passed over with --rewound and --fix, ids as well as X-Service-Sequence and order numbers',
    run: lookAtGivenIds,
  },
  {
    kind: 'partition_missing',
    what: 'days of today and the next week without partitions',
    remedy: 'made',
    run: lookAtPartitions,
  },
];

/** They come last, for others still have work to do. */
export const LATER_LOOKS: readonly Look[] = [
  {
    kind: 'erasure_forgotten',
    what: 'erasures that Temporal knows as done and whose data is back',
    remedy: 'asked for again',
    run: lookAtErasures,
  },
  {
    kind: 'upstream_numbers',
    what: 'phone numbers of WABAs, as upstream has them',
    remedy: 'looked up with --fix',
    run: async ({ database, fix }, tally) => {
      if (fix) tally.note(`${await askForAllNumbersAnew(database)} WABAs are looked up within half an hour`);
    },
  },
];

async function lookAtSequences({ database, fix }: ReconcileTools, tally: Tally): Promise<void> {
  for (const sequence of await listIdSequences(database)) {
    const greatest = await readGreatestId(database, sequence);
    // Read afterwards, for what runs meanwhile draws more.
    const lastId = await readLastId(database, sequence);
    if (greatest <= lastId) continue;
    if (fix) await passIds(database, sequence, greatest);
    tally.found(`${sequence.table}.${sequence.column}: ${lastId} < ${greatest}`, fix);
  }
}

const IDS_OF_WORKFLOWS: Readonly<Record<string, { table: string; pattern: RegExp }>> = {
  storeInboundMedia: { table: 'messages', pattern: /^media\/(\d+)$/ },
  sendMessage: { table: 'messages', pattern: /^send\/(\d+)$/ },
  enrichOrder: { table: 'orders', pattern: /^order\/(\d+)$/ },
  replayDeliveries: { table: 'replays', pattern: /^replay\/(\d+)$/ },
  sendBroadcast: { table: 'broadcasts', pattern: /^broadcast\/(\d+)$/ },
  approveApiKey: { table: 'api_key_requests', pattern: /^api-key-request\/(\d+)$/ },
};

const NEWEST = 200;
const LIST_MS = 60_000;

/** So many may have been drawn in what the restored database does not know. */
const PASSED: Readonly<Record<string, bigint>> = {
  messages: 1_000_000n,
  contacts: 1_000_000n,
  conversations: 1_000_000n,
};
const PASSED_OTHERWISE = 1_000n;

async function lookAtGivenIds(tools: ReconcileTools, tally: Tally): Promise<void> {
  const { database, fix, rewound } = tools;
  const isFixed = fix && rewound;
  const known = await readKnownIds(tools);
  for (const sequence of await listIdSequences(database)) {
    const { table } = sequence;
    const [id, lastId] = [known.get(table) ?? 0n, await readLastId(database, sequence)];
    if (isFixed) {
      const from = id > lastId ? id : lastId;
      await passIds(database, sequence, from + (PASSED[table] ?? PASSED_OTHERWISE));
    }
    if (id > lastId) tally.found(`${table}: ${id}`, isFixed);
  }
  if (isFixed) {
    const keys = await passSequences(database);
    await passOrderNumbers(database);
    tally.note(`ids, order numbers and the X-Service-Sequence of ${keys} ordering keys were passed over`);
  }
}

async function readKnownIds({ temporal, config }: ReconcileTools): Promise<Map<string, bigint>> {
  const queue = taskQueues(config.temporal.taskQueuePrefix).deliveries;
  const known = new Map<string, bigint>();
  for (const [type, { table, pattern }] of Object.entries(IDS_OF_WORKFLOWS)) {
    const query = `TaskQueue = "${queue}" AND WorkflowType = "${type}"`;
    await temporal.use(LIST_MS, async (client) => {
      for await (const group of listWorkflows(client, query, NEWEST)) {
        const ids = group.flatMap(({ workflowId }) => pattern.exec(workflowId)?.[1] ?? []).map(BigInt);
        for (const id of ids) if (id > (known.get(table) ?? 0n)) known.set(table, id);
        return;
      }
    });
  }
  return known;
}

async function lookAtPartitions({ database, fix }: ReconcileTools, tally: Tally): Promise<void> {
  const { days } = await readPartitions(database);
  if (days > 7) return;
  const missing = fix ? await ensurePartitions(database) : null;
  if (missing === null || missing.length === 0) tally.found(`from day ${days} on`, fix);
  for (const { table, day, reason } of missing ?? []) tally.found(`${table} ${day}: ${reason}`, false);
}

const ERASURES_AT_ONCE = 100;
const ERASURES_MS = 10 * 60_000;

async function lookAtErasures(tools: ReconcileTools, tally: Tally): Promise<void> {
  const { temporal, config, fix } = tools;
  const queue = taskQueues(config.temporal.taskQueuePrefix).deliveries;
  const types = ERASURE_WORKFLOW_TYPES.map((type) => `"${type}"`).join(', ');
  const query = `TaskQueue = "${queue}" AND WorkflowType IN (${types}) AND ExecutionStatus = "Completed"`;
  await temporal.use(ERASURES_MS, async (client) => {
    for await (const group of listWorkflows(client, query, ERASURES_AT_ONCE)) {
      for (const { workflowId, startedAt } of group) {
        const lost = await findLostErasure(tools, workflowId, startedAt);
        if (lost !== null) tally.found(workflowId, fix && (await eraseAgain(tools, lost)));
      }
    }
  });
}
