import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { PRODUCT_FILES, seedTargets } from '../../../bench/stack/seed.ts';

/** A product of another version: its functions note what they are asked to store, and where. */
const OTHER_VERSION = {
  [PRODUCT_FILES.accounts]: `export const createTenant = async ({ database }) => { database.calls.push('tenant'); return { userId: '7' }; };`,
  [PRODUCT_FILES.wabas]: `export const addWaba = async ({ database }, userId, { wabaId }) => { database.calls.push(userId + ' ' + wabaId); };`,
  [PRODUCT_FILES.endpoints]: `export const storeEndpoint = async ({ database }, wabaId, { url }) => { database.calls.push(url); return { id: '3' }; };`,
  [PRODUCT_FILES.database]: `export const openDatabase = ({ url }) => {
     const database = { url, calls: [], destroy: async () => { database.calls.push('closed'); } }; globalThis.seededBy = database; return database; };`,
};

test('the tenants of another checkout are stored by its own code, which knows its tables', async () => {
  const checkout = mkdtempSync(join(tmpdir(), 'heliograph-checkout-'));
  onTestFinished(() => rmSync(checkout, { recursive: true }));
  for (const [path, code] of Object.entries(OTHER_VERSION)) {
    mkdirSync(dirname(join(checkout, 'src', path)), { recursive: true });
    writeFileSync(join(checkout, 'src', path), code);
  }
  const installation = {
    database: null as never,
    secretBox: null as never,
    databaseUrl: 'postgresql://bench',
    checkout,
  };
  const [target, ...others] = await seedTargets(installation, 5, ['http://127.0.0.1:1']);
  expect([target, others]).toEqual([
    { wabaId: '900000000000005', phoneNumberId: '800000000000005', endpointId: '3', endpoint: 0 },
    [],
  ]);
  expect((globalThis as { seededBy?: object }).seededBy).toMatchObject({
    url: 'postgresql://bench',
    calls: ['tenant', '7 900000000000005', 'http://127.0.0.1:1', 'closed'],
  });
});

test('this product has the files whose functions a checkout is asked for', () => {
  const src = new URL('../../../src/', import.meta.url);
  expect(Object.values(PRODUCT_FILES).filter((path) => !existsSync(new URL(path, src)))).toEqual([]);
});
