import { expireEventsOf } from '../../../engine/deliveries/erase-events.ts';
import { holdIntake, lockIntake } from '../../../engine/inbox/intake-lock.ts';
import { shardOf } from '../../../engine/inbox/shards.ts';
import { lockCustomers } from '../../../features/customers/customers-lock.ts';
import {
  forgetContacts,
  forgetEmptyConversations,
  IS_ALONE,
  IS_EMPTY,
} from '../../../features/customers/erase-customers.ts';
import { forgetAliases } from '../../../features/customers/phone-aliases.ts';
import { forgetBroadcasts } from '../../../features/messages/erase-broadcasts.ts';
import {
  eraseMessages,
  expireFiles,
  rememberMessages,
  removeFilesOf,
} from '../../../features/messages/erase-messages.ts';
import { ERASED_MESSAGE, type ErasedMessage } from '../../../features/messages/erased-messages.ts';
import { removeFound } from '../../../platform/erasing.ts';
import type { ObjectStore } from '../../../platform/object-store/object-store.ts';
import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import { query, queryColumn, queryValue } from '../../../platform/postgres/sql.ts';

type Tools = { database: Database; objectStore: Pick<ObjectStore, 'remove'> };

/** Begins behind `behind` and ends there, or once `ending` is aborted. */
type Round = {
  ending: AbortSignal;
  /** Each gets its turn: the next round goes on behind the one that was begun last. Null: none yet. */
  behind: string | null;
};

function newRound(): Round {
  return { ending: new AbortController().signal, behind: null };
}

export function tenantRetentionSteps(
  tools: Tools,
): { name: string; run: (ending: AbortSignal) => Promise<void>; everyMs?: number }[] {
  const step = (name: string, expire: (tools: Tools, round: Round) => Promise<void>) => {
    const round = newRound();
    const run = (ending: AbortSignal) => expire(tools, Object.assign(round, { ending }));
    return { name, run };
  };
  return [
    step('files of tenants', expireMedia),
    step('messages of tenants', expireMessages),
    step('broadcasts of tenants', expireBroadcasts),
    step('conversations of tenants', expireConversations),
    // Goes through all that have not changed for long, most of which have a conversation.
    { ...step('customers of tenants', expireContacts), everyMs: DAY_MS },
    step('events of tenants', expireEvents),
    step('audit log of tenants', expireAuditEntries),
  ];
}

type Limit = { wabaId: string; days: number };

/** Looked at by one statement, and taken away by one transaction. */
const ROWS_PER_BATCH = 200;

/** For one WABA, or tenant, in one turn of housekeeping; what is left goes in the next. */
const LONGEST_MS = 60_000;

/** Where the next batch begins, behind what had to stay; null: there is none. */
type Next = string | null;

/** Each WABA whose tenant keeps it for its own time has its turn, batch by batch. */
function ofEachWaba<Needed extends Partial<Tools> & { database: Database }>(
  column: 'media_days' | 'event_days' | 'message_days',
  batch: (tools: Needed, limit: Limit, after: Next) => Promise<Next>,
): (tools: Needed, round?: Round) => Promise<void> {
  return async (tools, round = newRound()) => {
    const limits = await query<Limit>(
      tools.database,
      `select w.waba_id as "wabaId", p.${column} as days
         from tenant_policies p join wabas w on w.tenant_id = p.tenant_id
        where p.${column} is not null order by w.waba_id <= cast(:behind as text), w.waba_id`,
      { behind: round.behind },
    );
    for (const limit of limits) {
      if (round.ending.aborted) return;
      round.behind = limit.wabaId;
      await whileItMay(round, (after) => batch(tools, limit, after));
    }
  };
}

async function whileItMay({ ending }: Round, batch: (after: Next) => Promise<Next>): Promise<void> {
  const endMs = performance.now() + LONGEST_MS;
  let after: Next = null;
  do after = await batch(after);
  while (after !== null && !ending.aborted && performance.now() < endMs);
}

type Walk<Row> = {
  /** The rows in the order of `time`, under `alias`. */
  table: string;
  alias: string;
  time: string;
  where?: string;
  columns: string;
  mayGo: string;
  rows?: number;
  take(found: Row[]): Promise<void>;
};

/** Takes away those of the next rows of a WABA that may go; the others are passed over. */
async function walk<Row extends { id: string }>(
  database: Database,
  limit: Limit,
  after: Next,
  { table, alias, time, where = 'true', columns, mayGo, rows = ROWS_PER_BATCH, take }: Walk<Row>,
): Promise<Next> {
  const [afterAt = '-infinity', afterId = '0'] = after?.split(' ') ?? [];
  const walked = await query<Row & { at: string; mayGo: boolean }>(
    database,
    `select ${columns}, at, ${mayGo} as "mayGo"
       from (select *, to_char(${time}, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at from ${table}
              where waba_id = :wabaId and ${where} and ${time} < now() - :days * interval '1 day'
                and (${time}, id) > (cast(:afterAt as timestamptz), cast(:afterId as bigint))
              order by ${time}, id limit ${rows}) as ${alias}`,
    { ...limit, afterAt, afterId },
  );
  const found = walked.filter((row) => row.mayGo);
  if (found.length > 0) await take(found);
  const last = walked.at(-1);
  return walked.length === rows && last !== undefined ? `${last.at} ${last.id}` : null;
}

/** Their rows say so, and their URLs answer 410. */
export const expireMedia = ofEachWaba(
  'media_days',
  async ({ database, objectStore }: Tools, limit): Promise<Next> => {
    const files = await query<{ id: string; key: string }>(
      database,
      `select message_id as id, object_key as key from media
        where waba_id = :wabaId and state = 'stored' and finished_at < now() - :days * interval '1 day'
        order by finished_at limit ${ROWS_PER_BATCH}`,
      limit,
    );
    await removeFound(objectStore, files);
    await expireFiles(database, files);
    return files.length === ROWS_PER_BATCH ? '' : null;
  },
);

/**
 * Deliveries and attempts go too, unless a delivery is open. Reports of payments and numbers of ordering keys stay, as they do when the
 * installation drops a day.
 */
export const expireEvents = ofEachWaba(
  'event_days',
  async ({ database }: Pick<Tools, 'database'>, limit, after) => await expireEventsOf(database, limit, after),
);

const DAY_MS = 86_400_000;

/** Nothing of it is under way: no send, no download, no delivery. */
const IS_AT_REST = `
  not exists (select from outbound_messages o where o.message_id = m.id and o.state in ('queued', 'sending'))
  and not exists (select from media d where d.message_id = m.id and d.state = 'pending')
  and not exists (select from events e join deliveries d on d.event_uuid = e.id
                    join delivery_queue q on q.delivery_id = coalesce(d.batch_id, d.id)
                   where e.waba_id = m.waba_id
                     and e.event_id in (m.upstream_id, m.upstream_id || '_media', 'local:' || m.id,
                                        m.superseded_upstream_id, m.superseded_upstream_id || '_media'))
  and not exists (select from orders o join deliveries d on d.event_uuid = o.event_uuid
                    join delivery_queue q on q.delivery_id = coalesce(d.batch_id, d.id) where o.message_id = m.id)`;

/** Statuses, files, events and deliveries go too. What is under way stays until it has ended. */
export const expireMessages = ofEachWaba('message_days', async (tools: Tools, limit, after) => {
  const rows = { table: 'messages', alias: 'm', time: 'created_at', columns: ERASED_MESSAGE };
  const take = async (found: ErasedMessage[]) => await eraseOld(tools, limit.wabaId, found);
  return await walk(tools.database, limit, after, { ...rows, mayGo: IS_AT_REST, take });
});

/** With the recipients that never had a message; the others go with their messages. */
const expireBroadcasts = ofEachWaba(
  'message_days',
  async ({ database }: Pick<Tools, 'database'>, limit, after) => {
    const rows = { table: 'broadcasts', alias: 'b', time: 'created_at', columns: 'id', rows: 10 };
    const mayGo = `b.state in ('draft', 'done', 'cancelled')`;
    const take = async (found: { id: string }[]) => await forgetBroadcasts(database, idsOf(found));
    return await walk(database, limit, after, { ...rows, mayGo, take });
  },
);

async function eraseOld(
  { database, objectStore }: Tools,
  wabaId: string,
  messages: readonly ErasedMessage[],
): Promise<void> {
  await removeFilesOf({ database, objectStore }, messages);
  // What intake has ingested about them by then goes with them, and it takes nothing more: it need not wait meanwhile.
  await database.transaction(async (trx) => {
    await holdIntake(trx, shardOf(wabaId));
    await rememberMessages(trx, messages);
  });
  // A tenant's own files stay for as long as they are promised to.
  await database.transaction(async (trx) => await eraseMessages(trx, wabaId, messages, { uploads: 'stay' }));
}

/**
 * Of these nothing is left since their tenants keep messages no longer. What is remembered of a conversation by those who add messages
 * ends with it. One that has got a message meanwhile stays. What was merged into it has no messages, and goes with it.
 */
export const expireConversations = ofEachWaba(
  'message_days',
  async ({ database }: Pick<Tools, 'database'>, limit, after) => {
    const rows = { table: 'conversations', alias: 'c', time: 'last_message_at', columns: 'id' };
    return await walk(database, limit, after, {
      ...rows,
      where: 'merged_into is null',
      mayGo: IS_EMPTY,
      take: async (found) =>
        await forgetCustomers(database, limit.wabaId, (trx) =>
          forgetEmptyConversations(trx, limit, idsOf(found)),
        ),
    });
  },
);

/** Customers without a conversation, such as those who wrote in a group only, of whom nothing changed for as long as their tenants keep messages. */
export const expireContacts = ofEachWaba(
  'message_days',
  async ({ database }: Pick<Tools, 'database'>, limit, after) => {
    const rows = { table: 'contacts', alias: 'k', time: 'updated_at', columns: 'id', rows: 1_000 };
    const take = async (found: { id: string }[]) =>
      await forgetCustomers(database, limit.wabaId, async () => idsOf(found));
    return await walk(database, limit, after, { ...rows, mayGo: IS_ALONE, take });
  },
);

function idsOf(rows: readonly { id: string }[]): string[] {
  return rows.map(({ id }) => id);
}

/** Under the locks of those who add messages. */
async function forgetCustomers(
  database: Database,
  wabaId: string,
  find: (trx: Transaction) => Promise<string[]>,
): Promise<void> {
  await database.transaction(async (trx) => {
    await lockIntake(trx, shardOf(wabaId));
    await lockCustomers(trx, shardOf(wabaId));
    await forgetAliases(trx, wabaId, await forgetContacts(trx, wabaId, await find(trx)));
  });
}

const ENTRIES_PER_BATCH = 1_000;

/** The database judges which, and notes it there. */
export async function expireAuditEntries(
  { database }: Pick<Tools, 'database'>,
  round = newRound(),
): Promise<void> {
  const tenantIds = await queryColumn<string>(
    database,
    `select tenant_id from tenant_policies where audit_days is not null
      order by tenant_id <= cast(:behind as bigint), tenant_id`,
    { behind: round.behind },
  );
  for (const id of tenantIds) {
    if (round.ending.aborted) return;
    round.behind = id;
    await whileItMay(round, async () => {
      const gone = await queryValue<number>(
        database,
        `select expire_audit_entries(cast(:id as bigint), ${ENTRIES_PER_BATCH})`,
        { id },
      );
      return gone === ENTRIES_PER_BATCH ? '' : null;
    });
  }
}
