import { globSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repositoryFile } from '../deployment/compose-file.ts';
import { sharedTenants } from './shared-tenants.ts';
import { parseSource } from './test-sources.ts';

/**
 * A file of tests has a database for all of them, and each test a tenant that it makes itself: so a test passes alone,
 * and says all that it needs. Read from the code, these go unseen: a key or an object that a kit hands out with the
 * database, a tenant that a method of a kit makes, a change that one test makes to the whole installation and another looks at, and a variable that a test sets
 * and the next one reads.
 */

/** Files whose tests share a tenant, and why that is better. */
const SHARED: Readonly<Record<string, string>> = {
  'api/authorization-matrix.test.ts':
    'every route meets every object of two accounts, which only the last test changes',
  'api/graph/facade-matrix.test.ts':
    'every route meets every object of two accounts, which only the last test changes',
  'api/graph/products.test.ts':
    'the calls of a product follow each other: a later one names the file of an earlier one',
  'deliveries/own-rows.test.ts':
    'a queue that takes seconds to fill: each test undoes all that it changes in it',
  'deliveries/find-every-id.test.ts':
    'an object of every kind is made once, and each test looks for all of them',
  'portal/access/every-change.test.ts':
    'the same users meet every form that changes something, and must be asked who they are',
  'portal/authorization-matrix.test.ts':
    'every page meets every kind of user and every object of two accounts',
  'portal/endpoints/endpoint-pages.test.ts':
    'no test shares one: the number in its forms is refused, and the WABA is a default that no test takes',
  'reconcile/files.test.ts':
    'what the installation counts wrongly is the subject: each test begins and ends without any',
  'reconcile/reconcile.test.ts':
    'what the installation counts wrongly is the subject: each test begins and ends without any',
};

/** Files whose tests only read the account that is filled once; those that change something have a tenant of their own. */
const READ: readonly string[] = [
  'ingest/arrival/arrival-orders.test.ts',
  'mcp/read.test.ts',
  'portal/access/link-matrix.test.ts',
  'portal/access/links-of-some-wabas.test.ts',
  'portal/access/page-access.test.ts',
  'portal/page-widths.test.ts',
  'portal/pages.test.ts',
];

const ROOT = join(import.meta.dirname, '../../..');
const FOLDER = 'test/integration/';
const SOURCES = new Map(
  globSync('test/{integration,support}/**/*.ts', { cwd: ROOT }).map((path) => [
    path,
    parseSource(path, repositoryFile(path)),
  ]),
);

/** What the check says about one more file. */
function planted(...lines: string[]): string | undefined {
  const path = `${FOLDER}planted/planted.test.ts`;
  return sharedTenants(new Map([...SOURCES, [path, parseSource(path, lines.join('\n'))]]), [path]).get(path);
}

test('tests of a file share no tenant, but for those with a reason', () => {
  const found = [...sharedTenants(SOURCES).keys()].map((path) => path.slice(FOLDER.length));
  expect(found.toSorted()).toEqual([...Object.keys(SHARED), ...READ].toSorted());
  expect(Object.keys(SHARED).length).toBeLessThanOrEqual(10);
});

const IMPORTS = `
import { addKey, apiOfFile, startTestApi, WABA } from '../api/api-harness.ts';
import { freshTenant, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { createTestDatabase, testDatabase } from '../../support/test-database.ts';
import { newOffice } from '../portal/portal-browser.ts';`;
const API = 'const api = apiOfFile();';

test.each([
  ['a tenant', 'await freshTenant(api.database);', 'insertTenant'],
  ['a key of the fixtures’ WABA', 'await addKey(api.database);', 'insertApiKey'],
  ['a user, by a helper of the file', 'await office();', 'insertTenant'],
])('%s that is made once for two tests is found', (_, made, maker) => {
  const file = ['async function office() { await newOffice(api); }', `beforeAll(async () => { ${made} });`];
  const [one, other] = ["test('one', () => {});", "test('other', () => {});"];
  expect(planted(IMPORTS, API, ...file, one, other)).toBe(`${maker} for all of its tests`);
  expect(planted(IMPORTS, API, ...file, one)).toBeUndefined();
  expect(planted(IMPORTS, API, ...file, one.replace('test', 'test.each([1, 2])'))).toBeDefined();
  expect(planted(IMPORTS, API, ...file, `describe.each([1, 2])('all', () => { ${one} });`)).toBeDefined();
});

test.each([
  ['by its name', 'await query(api.database, sql, [WABA]);'],
  ['by its id', 'await query(api.database, "update wabas set x = 1 where waba_id = \'900000000000101\'");'],
  ['by the default of a helper', 'await addKey(api.database);'],
  ['by a body of upstream', 'await takeIn(api.database, fixtureBody("in_text"));'],
  ['by a constant', 'await query(api.database, sql, [PLACE]);'],
  ['by a helper of the file', 'await change();'],
])('the fixtures’ tenant is found in two tests: %s', (_, work) => {
  const file = [
    "import { fixtureBody } from '../../support/upstream-fixtures.ts';",
    'const PLACE = { waba: WABA };',
    'const change = async () => await query(api.database, sql, [WABA]);',
  ];
  const named = (name: string) => `test('${name}', async () => { ${work} });`;
  expect(planted(IMPORTS, API, ...file, named('one'), named('other'))).toMatch(/^more than one test names /);
  expect(planted(IMPORTS, API, ...file, named('one'), "test('other', () => {});")).toBeUndefined();
});

test('a tenant before each test, and a database in each test, are not refused', () => {
  const fresh = [
    'let tenant;',
    'beforeEach(async () => { tenant = await freshTenant(api.database); });',
    "test.each([1, 2])('%i', async () => { await addKey(api.database, tenant.wabaId); });",
  ];
  expect(planted(IMPORTS, API, ...fresh)).toBeUndefined();
  const own = [
    'async function world() { const { database } = await testDatabase(); await seedFixtureAccounts(database); }',
    "test.each([1, 2])('%i', async () => { await world(); await addKey(database, WABA); });",
  ];
  expect(planted(IMPORTS, ...own)).toBeUndefined();
  expect(planted(IMPORTS, 'beforeAll(() => createTestDatabase());', ...own)).toBeUndefined();
});
