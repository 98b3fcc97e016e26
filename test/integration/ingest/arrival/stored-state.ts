import type { Database } from '../../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { fixtureBody } from '../../../support/upstream-fixtures.ts';

export type Account = { wabaId: string; number: string; phone: string };

/** A body for an account. */
export type BodyFor = (account: Account) => Buffer;

/** The second 1,790,000,000 of the fixtures: an hour ago, so that no conversation is idle. */
export const START_SECONDS = Math.floor(Date.now() / 1_000) - 3_600;

/** A fixture in which each text of `edits` is another one, as it happens at the time of the test. */
export function bodyOf(name: string, ...edits: readonly (readonly [from: string, to: string])[]): BodyFor {
  let text = JSON.stringify(JSON.parse(fixtureBody(name).toString()));
  for (const [from, to] of edits) {
    if (!text.includes(from)) throw new Error(`${name} has no ${from}`);
    text = text.replaceAll(from, to);
  }
  text = text.replace(/\b17900(\d{5})\b/g, (_all, seconds) => String(START_SECONDS + Number(seconds)));
  return ({ wabaId, number, phone }) =>
    Buffer.from(
      text
        .replaceAll('900000000000101', wabaId)
        .replaceAll('800000000000111', number)
        .replaceAll('12025550100', phone),
    );
}

/** Accounts with a number each, whose phone no other has. */
export async function addAccounts(database: Database, count: number): Promise<Account[]> {
  const accounts = Array.from({ length: count }, (_none, index): Account => {
    const n = String(index).padStart(6, '0');
    return { wabaId: `955500000${n}`, number: `855500000${n}`, phone: `12027${n}` };
  });
  await execute(
    database,
    `with given as (select * from unnest(:wabaId::text[], :number::text[], :phone::text[]) as g (waba_id, number, phone)),
          tenant as (insert into tenants (business_name) values ('Fixture Store') returning id),
          waba as (insert into wabas (waba_id, tenant_id) select waba_id, id from given, tenant returning waba_id)
     insert into phone_numbers (phone_number_id, waba_id, display_phone_number, verified_name)
     select number, waba_id, phone, 'Fixture Store' from given join waba using (waba_id)`,
    {
      wabaId: accounts.map(({ wabaId }) => wabaId),
      number: accounts.map(({ number }) => number),
      phone: accounts.map(({ phone }) => phone),
    },
  );
  return accounts;
}

/** Bodies as they came, and places in the order of arrival. */
const OF_ARRIVAL = ['inbox', 'waiting_bodies', 'ordering_keys'];

/** Names that we draw, and our own times. */
const DRAWN = [
  ...['id', 'tenant_id', 'event_uuid', 'event_day', 'day', 'sequence', 'number', 'workflow_id', 'argument'],
  ...['created_at', 'updated_at', 'received_at', 'last_message_at', 'next_start_at', 'starts_at', 'give_at'],
];

type Row = Record<string, unknown>;

/**
 * All that is kept for each account, in every table that names an account or a number, with names of people and messages in place of our ids.
 * A copy that gave way to the same message to us is left out: it is kept for who has seen it. So is the conversation of an event: an event of a
 * status is stored with the one that is known by then. So are the events `preference`: each says what changed when its report came.
 */
export async function storedStates(
  database: Database,
  accounts: readonly Account[],
): Promise<Map<Account, string[]>> {
  const tables = await readTables(database);
  const named = namesOf(tables);
  const of = new Map(accounts.flatMap((one) => [[one.wabaId, one] as const, [one.number, one] as const]));
  const states = new Map(accounts.map((account) => [account, [] as string[]]));
  for (const [table, rows] of tables)
    for (const row of rows) {
      const account = of.get(String(row.waba_id ?? row.phone_number_id));
      if (account === undefined || (row.superseded_upstream_id ?? null) !== null) continue;
      if (row.event_type === 'preference') continue;
      states.get(account)?.push(lineOf(table, row, named, account));
    }
  for (const lines of states.values()) lines.sort();
  return states;
}

async function readTables(database: Database): Promise<Map<string, Row[]>> {
  const names = await query<{ name: string }>(
    database,
    `select distinct c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
        and a.attname in ('waba_id', 'phone_number_id') and c.relname <> all (:left::text[]) order by 1`,
    { left: OF_ARRIVAL },
  );
  const tables = new Map<string, Row[]>();
  for (const { name } of names) {
    const rows = await query<{ row: Row }>(database, `select to_jsonb(t) as row from "${name}" t`);
    tables.set(
      name,
      rows.map(({ row }) => row),
    );
  }
  return tables;
}

/** By the column that holds one, what an id of ours stands for. */
function namesOf(tables: ReadonlyMap<string, Row[]>): Map<string, string> {
  const rows = (table: string) => tables.get(table) ?? [];
  const named = new Map<string, string>();
  for (const { id, wa_id, user_id } of rows('contacts'))
    named.set(`contact_id ${id}`, `${wa_id ?? ''} ${user_id ?? ''}`);
  for (const { id, contact_id, group_id } of rows('conversations'))
    named.set(`conversation_id ${id}`, String(group_id ?? named.get(`contact_id ${contact_id}`)));
  for (const { id, upstream_id } of rows('messages')) named.set(`message_id ${id}`, String(upstream_id));
  return named;
}

/** Bytes as text. What upstream gives no time is of the time of arrival, to the hour. */
function comparable(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  if (value.startsWith('\\x'))
    return Buffer.from(value.slice(2), 'hex')
      .toString()
      .replace(/"occurredAt":"[^"]*",/, '');
  const at = /^\d{4}-\d\d-\d\dT/.test(value) ? Date.parse(value) : 0;
  const isOfUpstream = at < (START_SECONDS + 1_800) * 1_000;
  return isOfUpstream ? value : `${Math.round((at - Date.now()) / 3_600_000)} h from now`;
}

function lineOf(table: string, row: Row, named: ReadonlyMap<string, string>, account: Account): string {
  const shown = Object.entries(row).flatMap(([column, value]): [string, unknown][] => {
    if (value === null || DRAWN.includes(column) || (table === 'events' && column === 'conversation_id'))
      return [];
    const name = named.get(`${column === 'merged_into' ? 'conversation_id' : column} ${value}`);
    return [[column, name ?? comparable(value)]];
  });
  return `${table} ${JSON.stringify(Object.fromEntries(shown))}`
    .replaceAll(account.wabaId, 'WABA')
    .replaceAll(account.number, 'NUMBER')
    .replaceAll(account.phone, 'PHONE');
}
