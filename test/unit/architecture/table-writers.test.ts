import { globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repositoryFile } from '../deployment/compose-file.ts';
import { ROOMS } from './import-policy.ts';
import { schemaText } from './schema-text.ts';

const ROOT = join(import.meta.dirname, '../../..');

const INGEST = 'ingest_items writes all of a body in one round trip (docs/decisions/0084)';
const PUBLISH = 'publish_events writes events and their deliveries in one round trip (docs/decisions/0084)';

/** Tables that a function of another room writes too, and why that is better than one owner. */
const SHARED_BY_FUNCTIONS: Readonly<Record<string, { writers: readonly string[]; why: string }>> = {
  contacts: { writers: ['features/customers', 'ingest/intake'], why: INGEST },
  conversations: { writers: ['features/customers', 'ingest/intake'], why: INGEST },
  deliveries: { writers: ['engine/deliveries', 'engine/queue'], why: PUBLISH },
  inbox: { writers: ['engine/inbox', 'ingest/intake'], why: INGEST },
  messages: { writers: ['features/messages', 'ingest/intake'], why: INGEST },
  message_statuses: { writers: ['features/messages', 'ingest/intake'], why: INGEST },
  ordering_keys: { writers: ['engine/deliveries', 'engine/queue'], why: PUBLISH },
};

/** It works in transactions that are rolled back. */
const NEVER_COMMITTED = ['src/worker/rehearsal.ts'];

const TABLES = new Set(
  [...schemaText().matchAll(/^create (?:unlogged )?table (?:if not exists )?(\w+)/gm)].map(
    ([, name = '']) => name,
  ),
);
const MIGRATIONS = 'src/platform/postgres/migrations';
const SOURCES = new Map(
  globSync('src/**/*.ts', { cwd: ROOT })
    .filter((path) => !NEVER_COMMITTED.includes(path) && !path.startsWith(`${MIGRATIONS}/`))
    .map((path) => [path, repositoryFile(path)]),
);

/** Whose function it is, of each in functions.sql that writes. */
const FUNCTION_OWNERS: Readonly<Record<string, string>> = {
  chain_audit_entry: 'platform',
  count_received: 'features/messages',
  count_status: 'features/messages',
  count_stored_files: 'features/messages',
  enqueue_deliveries: 'engine/queue',
  expire_audit_entries: 'platform',
  ingest_items: 'ingest/intake',
  keep_endpoint_health: 'engine/endpoint',
  move_message_states: 'features/messages',
  note_accepted: 'engine/endpoint',
  promote_behind: 'engine/queue',
  publish_events: 'engine/deliveries',
  redact_audit_entries: 'platform',
  release_event: 'engine/queue',
  remove_deliveries: 'engine/queue',
  settle_and_follow: 'engine/queue',
};

/** The text of each SQL function by its name, without comments. */
const FUNCTIONS = new Map(
  repositoryFile(`${MIGRATIONS}/functions.sql`)
    .replace(/--.*$/gm, '')
    .split('create or replace function ')
    .slice(1)
    .map((text) => [/^\w+/.exec(text)?.[0] ?? '', text]),
);

/** A statement, and a table or column that a room names for one that is built from the name. */
const WRITES = [
  /\b(?:insert\s+into|update(?:\s+only)?|delete\s+from(?:\s+only)?|truncate)\s+(\w+)/gi,
  /\btable: '(\w+)',\s+count: /g,
  /\bdeleteUpTo\(\s*\w+,\s*\w+,\s*'(\w+)'/g,
  /^ {2}\['(\w+)', '\w+'\],$/gm,
];

/** The room, or the folder of src that is none, in which a file is. */
function ownerOf(path: string): string {
  return (
    ROOMS.find((room) => path.startsWith(`${room}/`))?.slice('src/'.length) ?? path.split('/')[1] ?? path
  );
}

function writtenIn(text: string): string[] {
  return [...text.matchAll(/\b(?:insert\s+into|update|delete\s+from)\s+(\w+)/gi)]
    .map(([, name = '']) => name)
    .filter((name) => TABLES.has(name));
}

/** Who writes each table. */
function writersOf(sources: ReadonlyMap<string, string>): Map<string, string[]> {
  const writers = new Map<string, Set<string>>();
  for (const [path, text] of sources) {
    for (const [, name = ''] of WRITES.flatMap((pattern) => [...text.matchAll(pattern)])) {
      if (TABLES.has(name)) writers.set(name, (writers.get(name) ?? new Set()).add(ownerOf(path)));
    }
  }
  for (const [name, text] of FUNCTIONS) {
    const owner = FUNCTION_OWNERS[name];
    for (const table of owner === undefined ? [] : writtenIn(text))
      writers.set(table, (writers.get(table) ?? new Set()).add(owner ?? ''));
  }
  return new Map([...writers].map(([name, owners]) => [name, [...owners].toSorted()]));
}

function shared(sources: ReadonlyMap<string, string>): Record<string, string[]> {
  return Object.fromEntries([...writersOf(sources)].filter(([, owners]) => owners.length > 1));
}

test('each table is written by one room, but for those that functions write in one round trip', () => {
  expect(TABLES.size).toBeGreaterThan(50);
  const expected = Object.entries(SHARED_BY_FUNCTIONS).map(([name, { writers }]) => [name, writers]);
  expect(shared(SOURCES)).toEqual(Object.fromEntries(expected));
});

test('each SQL function that writes has an owner', () => {
  expect(FUNCTIONS.size).toBeGreaterThan(20);
  const writing = [...FUNCTIONS].filter(([, text]) => writtenIn(text).length > 0).map(([name]) => name);
  expect(writing.toSorted()).toEqual(Object.keys(FUNCTION_OWNERS));
});

test('a second writer is found, however it writes', () => {
  for (const text of [
    'await execute(trx, `insert into api_keys (id) values (1)`, []);',
    "await execute(trx, 'update api_keys set id = ?', [id]);",
    'await execute(trx, `with gone as (delete from\n  api_keys) select 1`, []);',
    "const KEYS: ErasedTable = { table: 'api_keys', count: 'keys', key: 'id' };",
    "return await deleteUpTo(database, limit, 'api_keys', 'expires_at < now()');",
    "const NAMED: NamedIn = [\n  ['api_keys', 'name'],\n];",
  ]) {
    const planted = new Map([...SOURCES, ['src/features/mail/planted.ts', text]]);
    expect(shared(planted)).toMatchObject({ api_keys: ['features/keys', 'features/mail'] });
  }
});

/** Columns that stay for the release before this one; the next one drops them (migration 0025). Nobody else may read or write them. */
const LEAVING = {
  table: 'webhook_endpoints',
  columns: [
    'mode',
    'mode_reason',
    'mode_changed_at',
    'failing_since',
    'recovered_at',
    'next_probe_at',
    'probe_failures',
    'failing_notified',
    'failures_notified_at',
    'has_parked',
    'has_backlog',
    'backlog_due_at',
    'backlog_retried_at',
  ],
  carriedBy: 'src/engine/endpoint/former-columns.ts',
};

function usesOfLeaving(text: string): string[] {
  const columns = `(?:${LEAVING.columns.join('|')})\\b`;
  const aliases = [...text.matchAll(/\bwebhook_endpoints (?:as )?(\w)\b/g)].map(([, alias]) => alias);
  const named =
    aliases.length === 0 ? [] : [...text.matchAll(new RegExp(`\\b[${aliases.join('')}]\\.${columns}`, 'g'))];
  const set = text.matchAll(
    new RegExp(`\\b(?:update|insert into) webhook_endpoints\\b[^\`;)]*?[ (]${columns}(?= =|,|\\))`, 'g'),
  );
  return [...named, ...set].map(([found]) => found);
}

test('columns that leave a table are used by nothing but what carries them', () => {
  const functions = [...FUNCTIONS].map(([name, text]) => [`functions.sql: ${name}`, text] as const);
  const users = [...SOURCES, ...functions].filter(([, text]) => usesOfLeaving(text).length > 0);
  expect(users.map(([path]) => path)).toEqual([LEAVING.carriedBy]);
  expect(usesOfLeaving(`from webhook_endpoints w where w.mode = 'open'`)).toHaveLength(1);
});

/** Rooms name their tables to these; or all tables are of the same room; or rows move between partitions. */
const BUILT = [
  'src/features/users/user-store.ts',
  'src/ops/erasures/retention/needed-rows.ts',
  'src/ops/erasures/steps/account-steps.ts',
  'src/ops/secrets/secret-keys.ts',
  'src/platform/erasing.ts',
  'src/platform/postgres/partitions.ts',
  'src/platform/postgres/sql.ts',
];

test('a statement that is built from the name of a table stands only where rooms name the table', () => {
  const built = [...SOURCES].filter(([, text]) => /\b(?:insert into|update|delete from) \$\{/i.test(text));
  expect(built.map(([path]) => path).toSorted()).toEqual(BUILT);
});
