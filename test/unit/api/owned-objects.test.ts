import { expect, test } from 'vitest';
import { makeOwnedObjects } from '../../../src/api/graph/owned-objects.ts';

const WABA = '900000000000101';
const listOf = (id: string) => JSON.stringify({ data: [{ id }] });

/** Upstream answers when it is told to. */
function slowLists() {
  const asked: { edge: string; answer: (text: string) => void; fail: () => void }[] = [];
  const page = async (edge: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    asked.push({ edge, answer: resolve, fail: () => reject(new Error('away')) });
    return await promise;
  };
  return { asked, page };
}

test('requests side by side share one look at upstream’s list', async () => {
  const owned = makeOwnedObjects();
  const { asked, page } = slowLists();
  const kinds = Array.from({ length: 50 }, (_, n) => owned.kindOf(WABA, String(n), page));
  await Promise.resolve();
  expect(asked.map(({ edge }) => edge)).toEqual(['message_templates']);
  asked[0]?.answer(listOf('7'));
  await expect.poll(() => asked.map(({ edge }) => edge)).toEqual(['message_templates', 'flows']);
  asked[1]?.answer(listOf('8'));
  const found = await Promise.all(kinds);
  expect([found[7], found[8], found[9]]).toEqual(['template', 'flow', null]);
});

test('a look that began before the WABA made something is not kept; one that failed neither', async () => {
  const owned = makeOwnedObjects();
  const { asked, page } = slowLists();
  const before = owned.kindOf(WABA, '7', page);
  owned.forget(WABA);
  asked[0]?.answer(listOf('7'));
  expect(await before).toBe('template');
  const after = owned.kindOf(WABA, '7', page);
  expect(asked).toHaveLength(2);
  asked[1]?.fail();
  await expect(after).rejects.toThrow('away');
  const again = owned.kindOf(WABA, '7', page);
  asked[2]?.answer(listOf('7'));
  expect(await again).toBe('template');
});
