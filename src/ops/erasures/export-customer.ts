import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { ZipFile } from 'yazl';
import { knownWaba } from '../../features/accounts/accounts.ts';
import { type Audited, recordChange } from '../../platform/audit/audit.ts';
import type { ObjectStore } from '../../platform/object-store/object-store.ts';
import { ObjectMissing } from '../../platform/object-store/store-errors.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { query, queryValue } from '../../platform/postgres/sql.ts';
import { type CustomerName, knownCustomer } from './erasures.ts';
import { idsOfCustomer } from './steps/customer-ids.ts';

export type ExportTools = { database: Database; objectStore: Pick<ObjectStore, 'getRange'> } & Audited;

/** `allIds`: also former ones, each with the time until which it was theirs. */
type Subject = Customer & { allIds: readonly string[]; untils: readonly string[] };

type Customer = { wabaId: string; customerId: string; ids: readonly string[] };

const ROWS_PER_PAGE = 200;

/**
 * A zip archive that is made while it is read: neither texts nor files are held. Throws RequestError: `invalid_value`, `unknown_waba`,
 * `unknown_customer`. An error on the way breaks the archive.
 */
export async function exportCustomer(
  tools: ExportTools,
  wabaId: string,
  named: CustomerName,
): Promise<{ fileName: string; archive: Readable }> {
  const { database, actor } = tools;
  await knownWaba(database, wabaId);
  const { id: customerId, ids } = await knownCustomer(database, wabaId, named);
  await recordChange(database, actor, {
    wabaId,
    action: 'customer.exported',
    target: `customer ${customerId}`,
  });
  const zip = new ZipFile();
  const archive = zip.outputStream as Readable;
  const given = new AbortController();
  archive.once('close', () => given.abort());
  // An archive that was cut off must not look whole.
  zip.on('error', (error: Error) => archive.destroy(error));
  fill(zip, tools, { wabaId, customerId, ids }, given.signal).catch((error: Error) => archive.destroy(error));
  return { fileName: `customer-${customerId}.zip`, archive };
}

async function fill(
  zip: ZipFile,
  { database, objectStore }: ExportTools,
  customer: Customer,
  signal: AbortSignal,
): Promise<void> {
  const { ids: allIds, untils } = await idsOfCustomer(database, customer);
  const subject = { ...customer, allIds, untils };
  const add = async (name: string, source: Readable) => {
    zip.addReadStream(source, name);
    try {
      await finished(source, { signal });
    } finally {
      source.destroy();
    }
  };
  await add('customer.json', Readable.from([await customerText(database, subject)]));
  await add('conversations.json', Readable.from([await conversationsText(database, subject)]));
  await add('messages.ndjson', Readable.from(messageLines(database, subject)));
  await add('payments.ndjson', Readable.from(paymentLines(database, subject)));
  for await (const { path, objectKey } of filesOf(database, subject)) {
    try {
      await add(path, await objectStore.getRange(objectKey));
    } catch (error) {
      // The message says what it was; one lost file must not cost the others.
      if (!(error instanceof ObjectMissing)) throw error;
    }
  }
  zip.end();
}

async function customerText(database: Database, { wabaId, customerId, ids }: Subject): Promise<string> {
  const text = await queryValue<string>(
    database,
    `select cast(jsonb_build_object('customerId', cast(id as text), 'wabaId', waba_id, 'phone', wa_id,
              'userId', nullif(user_id, ''), 'parentUserId', parent_user_id, 'name', profile_name, 'username', username,
              'createdAt', created_at, 'updatedAt', updated_at,
              'otherNumbers', coalesce((select jsonb_agg(phone) from phone_aliases
                                         where waba_id = :wabaId and wa_id = any (cast(:ids as text[]))), '[]'),
              'optOuts', coalesce((select jsonb_agg(jsonb_build_object('phoneNumberId', o.phone_number_id, 'scope', o.scope,
                                     'source', o.source, 'since', o.since, 'reason', o.reason) order by o.id)
                                     from opt_outs o where o.contact_id = contacts.id and o.is_stop), '[]'),
              'groups', coalesce((select jsonb_agg(jsonb_build_object('conversationId', cast(g.conversation_id as text),
                                    'subject', d.subject, 'state', g.state, 'since', g.at) order by g.conversation_id)
                                    from group_members g left join group_details d on d.conversation_id = g.conversation_id
                                   where g.contact_id = contacts.id), '[]')) as text)
       from contacts where waba_id = :wabaId and id = :customerId`,
    { wabaId, customerId, ids },
  );
  return text ?? '{}';
}

async function conversationsText(database: Database, { wabaId, customerId }: Subject): Promise<string> {
  const text = await queryValue<string>(
    database,
    `select cast(coalesce(jsonb_agg(jsonb_build_object('conversationId', cast(id as text), 'phoneNumberId', phone_number_id,
              'createdAt', created_at, 'lastMessageAt', last_message_at) order by id), '[]') as text)
       from conversations where waba_id = :wabaId and contact_id = :customerId and merged_into is null`,
    { wabaId, customerId },
  );
  return text ?? '[]';
}

type Talk = { conversationId: string; isGroup: boolean };

/** The customer may have written in any group of the WABA. */
async function talksOf(database: Database, { wabaId, customerId }: Subject): Promise<Talk[]> {
  return await query<Talk>(
    database,
    `select id as "conversationId", group_id is not null as "isGroup" from conversations
      where waba_id = :wabaId and (contact_id = :customerId or group_id is not null) and merged_into is null order by id`,
    { wabaId, customerId },
  );
}

/** Messages with the customer, and what the customer wrote in groups. */
const THEIRS = `m.conversation_id = :conversationId and m.id > :after
  and (not :isGroup or exists (
    select from unnest(cast(:allIds as text[]), cast(:untils as timestamptz[])) as n (name, until)
     where name = m.group_sender and m.created_at <= until))`;

async function* messageLines(database: Database, subject: Subject): AsyncGenerator<string> {
  for (const talk of await talksOf(database, subject)) {
    const rows = pagesOf<{ id: string; content: string; members: string; statuses: string }>(
      database,
      `select m.id, m.content,
              cast(jsonb_build_object('serviceMessageId', cast(m.id as text), 'metaMessageId', m.upstream_id,
                'conversationId', cast(m.conversation_id as text), 'phoneNumberId', m.phone_number_id,
                'direction', m.direction, 'type', m.type, 'timestamp', m.sent_at, 'createdAt', m.created_at,
                'file', (select ${FILE_PATH} from media f where f.message_id = m.id and f.state = 'stored')) as text) as members,
              (select '[' || coalesce(string_agg(s.content, ',' order by s.received_at), '') || ']' from message_statuses s
                where s.phone_number_id = m.phone_number_id and s.upstream_id = m.upstream_id) as statuses
         from messages m where ${THEIRS} order by m.id limit ${ROWS_PER_PAGE}`,
      { ...subject, ...talk },
    );
    // Upstream's objects as they are stored.
    for await (const { members, content, statuses } of rows)
      yield `${members.slice(0, -1)},"statuses":${statuses},"message":${content}}\n`;
  }
}

async function* pagesOf<Row extends { id: string }>(
  database: Database,
  text: string,
  values: Readonly<Record<string, string | boolean | readonly string[]>>,
): AsyncGenerator<Row> {
  for (let after = '0'; ; ) {
    const rows: Row[] = await query<Row>(database, text, { ...values, after });
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < ROWS_PER_PAGE) return;
    after = last.id;
  }
}

async function* paymentLines(
  database: Database,
  { wabaId, allIds, untils }: Subject,
): AsyncGenerator<string> {
  const needles = allIds.map((id) => JSON.stringify(id));
  let after = { lane: '', id: '00000000-0000-0000-0000-000000000000' };
  for (;;) {
    const rows = await query<{ lane: string; id: string; data: string | null }>(
      database,
      `select lane, event_uuid as id, case when exists (
                select from unnest(cast(:needles as text[]), cast(:untils as timestamptz[])) as n (needle, until)
                 where created_at <= until and position(needle in data) > 0) then data end as data
         from payment_reports where waba_id = :wabaId and (lane, event_uuid) > (:lane, cast(:id as uuid))
        order by lane, event_uuid limit ${ROWS_PER_PAGE}`,
      { ...after, wabaId, needles, untils },
    );
    for (const { data } of rows) if (data !== null) yield `${data}\n`;
    const last = rows.at(-1);
    if (last === undefined || rows.length < ROWS_PER_PAGE) return;
    after = { lane: last.lane, id: last.id };
  }
}

/** SQL: within the archive; `f` is the row of the file. */
const FILE_PATH = `'files/' || f.message_id || coalesce('-' || regexp_replace(f.file_name, '[^a-zA-Z0-9._-]+', '_', 'g'), '')`;

async function* filesOf(
  database: Database,
  subject: Subject,
): AsyncGenerator<{ path: string; objectKey: string }> {
  for (const talk of await talksOf(database, subject)) {
    yield* pagesOf<{ id: string; path: string; objectKey: string }>(
      database,
      `select m.id, ${FILE_PATH} as path, f.object_key as "objectKey"
         from messages m join media f on f.message_id = m.id and f.state = 'stored'
        where ${THEIRS} order by m.id limit ${ROWS_PER_PAGE}`,
      { ...subject, ...talk },
    );
  }
}
