import { expect, test } from 'vitest';
import { createKeyLookup } from '../../../src/api/keys/api-key-auth.ts';
import { hashApiKey, newApiKey } from '../../../src/features/keys/api-key.ts';
import { revokeApiKey } from '../../../src/features/keys/api-key-store.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { addKey, OTHER_WABA, WABA } from '../api/api-harness.ts';

test('keys that are looked up together each get their own answer, in few statements', async () => {
  const { database } = await seededDatabase();
  const [mine, other] = [await addKey(database), await addKey(database, OTHER_WABA)];
  let statements = 0;
  const counting = {
    raw: (text: string, bindings: never) => {
      statements += 1;
      return database.raw(text, bindings);
    },
  } as unknown as Database;
  const find = createKeyLookup(counting);
  const keys = [mine.key, other.key, newApiKey(), mine.key];
  const found = await Promise.all(keys.map((key) => find(hashApiKey(key))));
  expect(found.map((state) => state?.wabaId ?? null)).toEqual([WABA, OTHER_WABA, null, WABA]);
  expect(statements).toBe(1);
});

test('a key that was revoked before a request came is refused, whatever is under way', async () => {
  const { database } = await seededDatabase();
  const { id, key } = await addKey(database);
  const find = createKeyLookup(database);
  const before = Array.from({ length: 20 }, () => find(hashApiKey(key)));
  await revokeApiKey(database, WABA, id);
  expect((await find(hashApiKey(key)))?.isRevoked).toBe(true);
  await Promise.all(before);
});

test('a lookup that fails fails its requests only', async () => {
  const { database } = await seededDatabase();
  const { key } = await addKey(database);
  let isBroken = true;
  const breaking = {
    raw: async (text: string, bindings: never) => {
      if (isBroken) throw new Error('connection lost');
      return await database.raw(text, bindings);
    },
  } as unknown as Database;
  const find = createKeyLookup(breaking);
  await expect(find(hashApiKey(key))).rejects.toThrow('connection lost');
  isBroken = false;
  expect((await find(hashApiKey(key)))?.wabaId).toBe(WABA);
});
