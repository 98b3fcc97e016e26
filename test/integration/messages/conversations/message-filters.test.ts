import fc from 'fast-check';
import { expect, test } from 'vitest';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { apiClient } from '../../api/api-client.ts';
import { addConversation, addMessage, NUMBER, startTestApi, WABA } from '../../api/api-harness.ts';

const START_MS = Date.parse('2026-11-20T10:00:00Z');
const iso = (ms: number) => new Date(ms).toISOString();

async function conversation() {
  const api = await startTestApi();
  const id = await addConversation(api.database);
  return { ...api, ...(await apiClient(api)), id, url: `/api/external/conversations/${id}/messages` };
}

/** Messages `first` to `last`, a minute apart; the odd ones from the business, each tenth an image. */
async function fill(database: Parameters<typeof execute>[0], id: string, first: number, last: number) {
  await execute(
    database,
    `insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, content, created_at)
     select '${WABA}', '${NUMBER}', cast(:id as bigint), case when n % 2 = 1 then 'outbound' else 'inbound' end,
            'wamid.' || n, case when n % 10 = 0 then 'image' else 'text' end, '{"n":' || n || '}',
            cast(:start as timestamptz) + n * interval '1 minute'
       from generate_series(cast(:first as integer), cast(:last as integer)) n order by n`,
    { id, first, last, start: new Date(START_MS) },
  );
}

test('every filter alone and with others shows what it names, in both orders and pages of any size', async () => {
  const { database, id, url, walk } = await conversation();
  const other = await addConversation(database);
  await fill(database, id, 0, 199);
  await addMessage(database, other);
  await fill(database, id, 200, 399);
  const numbers = Array.from({ length: 400 }, (_, n) => n);
  const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
  const minute = fc.integer({ min: -10, max: 410 });
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        direction: optional(fc.constantFrom('inbound', 'outbound')),
        type: optional(fc.constantFrom('text', 'image', 'poll')),
        since: optional(minute),
        until: optional(minute),
        order: fc.constantFrom('asc', 'desc'),
        limit: fc.integer({ min: 20, max: 100 }),
      }),
      async ({ direction, type, since, until, order, limit }) => {
        const parameters = new URLSearchParams({ order, limit: String(limit) });
        if (direction !== undefined) parameters.set('direction', direction);
        if (type !== undefined) parameters.set('type', type);
        if (since !== undefined) parameters.set('since', iso(START_MS + since * 60_000));
        if (until !== undefined) parameters.set('until', iso(START_MS + until * 60_000));
        const rows = await walk(`${url}?${parameters}`);
        const expected = numbers.filter(
          (n) =>
            (direction === undefined || (n % 2 === 1) === (direction === 'outbound')) &&
            (type === undefined || type === (n % 10 === 0 ? 'image' : 'text')) &&
            n >= (since ?? n) &&
            n < (until ?? n + 1),
        );
        if (order === 'desc') expected.reverse();
        expect(rows.map(({ message }) => (message as { n: number }).n)).toEqual(expected);
      },
    ),
    { numRuns: 40 },
  );
});

test('messages whose times are in another order than their ids by less than two minutes are not lost to times', async () => {
  const { database, id, url, page } = await conversation();
  await fill(database, id, 0, 99);
  await execute(
    database,
    `update messages set created_at = created_at + interval '90 seconds' where upstream_id in ('wamid.50', 'wamid.70')`,
  );
  const numbersOf = async (query: string) =>
    (await page(`${url}?order=asc&limit=100&${query}`)).data.map(({ metaMessageId }) => metaMessageId);
  const from = await numbersOf(`since=${iso(START_MS + 51 * 60_000)}`);
  expect(from.slice(0, 2)).toEqual(['wamid.50', 'wamid.51']);
  const to = await numbersOf(`until=${iso(START_MS + 71 * 60_000)}`);
  expect(to.slice(-2)).toEqual(['wamid.68', 'wamid.69']);
});

test('a filter that passes over more than ten thousand messages gives short pages that go on', async () => {
  const { database, id, url, page, walk } = await conversation();
  await fill(database, id, 1, 10_500);
  await execute(
    database,
    `update messages set type = 'sticker' where upstream_id in ('wamid.3', 'wamid.10500')`,
  );
  const first = await page(`${url}?type=sticker`);
  expect(first.data.map(({ metaMessageId }) => metaMessageId)).toEqual(['wamid.10500']);
  expect(first.hasMore).toBe(true);
  const all = await walk(`${url}?type=sticker`);
  expect(all.map(({ metaMessageId }) => metaMessageId)).toEqual(['wamid.10500', 'wamid.3']);
  expect(await page(`${url}?type=poll`)).toMatchObject({ data: [], hasMore: true });
  expect(await walk(`${url}?type=poll`)).toEqual([]);
});

test('pages end early when contents are large, and one of any size is shown', async () => {
  const { database, id, url, page, walk } = await conversation();
  await fill(database, id, 0, 9);
  await execute(
    database,
    `update messages set content = '{"text":"' || repeat('x', 3000000) || '"}' where id % 2 = 0`,
  );
  const { data, hasMore } = await page(url);
  expect([data.length, hasMore]).toEqual([3, true]);
  expect((await walk(`${url}?limit=100`)).map(({ metaMessageId }) => metaMessageId)).toEqual(
    Array.from({ length: 10 }, (_, n) => `wamid.${9 - n}`),
  );
});

test('upwards the cursor of the last page goes on with what came since', async () => {
  const { database, id, url, page } = await conversation();
  await fill(database, id, 0, 2);
  const first = await page(`${url}?order=asc`);
  expect([first.data.length, first.hasMore]).toEqual([3, false]);
  const next = `${url}?order=asc&cursor=${first.nextCursor}`;
  const empty = await page(next);
  expect(empty).toEqual({ data: [], hasMore: false, nextCursor: first.nextCursor });
  await fill(database, id, 3, 4);
  expect((await page(next)).data.map(({ metaMessageId }) => metaMessageId)).toEqual(['wamid.3', 'wamid.4']);
});
