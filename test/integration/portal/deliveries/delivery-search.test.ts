import { expect, test } from 'vitest';
import { searchDeliveries } from '../../../../src/features/delivery-log/delivery-search.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { publicDeliveryId } from '../../../../src/platform/public-ids.ts';
import { addEndpoint } from '../../../support/test-accounts.ts';
import { seededDatabase } from '../../../support/test-database.ts';
import { addManyDeliveries } from './many-deliveries.ts';

const WABA = '900000000000101';
const OTHER_WABA = '900000000000202';
const COUNT = Number(process.env.HELIOGRAPH_TEST_DELIVERIES ?? 60_000);

type Given = Parameters<typeof searchDeliveries>[2];

/** All pages one after the other, with the longest time that one took. */
async function walk(
  database: Database,
  wabaId: string | null,
  given: Given,
  limit: number,
  maxPages: number,
) {
  const ids: string[] = [];
  let before = null;
  let pages = 0;
  let slowestMs = 0;
  do {
    const startMs = performance.now();
    const page: Awaited<ReturnType<typeof searchDeliveries>> = await searchDeliveries(
      { database },
      wabaId,
      given,
      { before, limit },
    );
    slowestMs = Math.max(slowestMs, performance.now() - startMs);
    ids.push(...page.deliveries.map(({ id }) => id));
    before = page.next;
    pages += 1;
  } while (before !== null && pages < maxPages);
  return { ids, pages, slowestMs, isEnd: before === null };
}

test('every way through a long log is complete, in order and quick', { timeout: 600_000 }, async () => {
  const { database } = await seededDatabase();
  const endpoints = await Promise.all(
    [1, 2, 3].map((n) => addEndpoint(database, WABA, `https://receiver.example/${n}`)),
  );
  const other = await addEndpoint(database, OTHER_WABA, 'https://other.example/');
  const endpointIds = endpoints.map(({ id }) => id);
  await addManyDeliveries(database, { wabaId: WABA, endpointIds, count: COUNT });
  await addManyDeliveries(database, { wabaId: OTHER_WABA, endpointIds: [other.id], count: 50 });

  const expected = async (condition: string, limit: number): Promise<string[]> => {
    const { rows } = await database.raw(
      `select d.id from deliveries d join events e on e.day = d.event_day and e.id = d.event_uuid
        where ${condition} order by d.day desc, d.created_at desc, d.id desc limit ${limit}`,
    );
    return rows.map((row: { id: string }) => row.id);
  };
  const own = `d.waba_id = '${WABA}'`;
  const cases: [string | null, Given, string][] = [
    [WABA, {}, own],
    [OTHER_WABA, {}, `d.waba_id = '${OTHER_WABA}'`],
    [null, {}, 'true'],
    [WABA, { endpointId: endpointIds[1] }, `${own} and d.endpoint_id = ${endpointIds[1]}`],
    [WABA, { state: 'failed' }, `${own} and d.state = 'failed'`],
    [null, { state: 'failed' }, `d.state = 'failed'`],
    [
      WABA,
      { response: '503' },
      `${own} and exists (select 1 from attempts a where a.delivery_id = d.id and a.status_code = 503)`,
    ],
    [WABA, { response: '5xx', state: 'delivered' }, `${own} and d.attempts = 2`],
    [WABA, { response: '200', state: 'failed' }, 'false'],
    [WABA, { eventType: 'order' }, `${own} and e.event_type = 'order'`],
    [null, { eventType: 'order' }, `e.event_type = 'order'`],
    [WABA, { state: 'dropped' }, 'false'],
    [WABA, { state: 'pending' }, 'false'],
    [WABA, { response: 'timeout' }, 'false'],
  ];
  for (const [wabaId, given, condition] of cases) {
    const { ids, pages, slowestMs, isEnd } = await walk(database, wabaId, given, 50, 60);
    const wanted = await expected(condition, isEnd ? 1_000_000 : ids.length);
    process.stdout.write(
      `${JSON.stringify({ wabaId, given })}: ${ids.length} found, ${pages} pages, slowest ${slowestMs.toFixed(1)} ms\n`,
    );
    expect(ids).toEqual(wanted);
  }

  const [one = ''] = await expected(own, 1);
  for (const id of ['wamid.7', publicDeliveryId(one)]) {
    const startMs = performance.now();
    const { deliveries } = await searchDeliveries({ database }, WABA, { id }, { before: null, limit: 50 });
    process.stdout.write(`${id}: ${(performance.now() - startMs).toFixed(1)} ms\n`);
    expect(deliveries).toHaveLength(1);
    const elsewhere = await searchDeliveries({ database }, OTHER_WABA, { id }, { before: null, limit: 50 });
    expect(elsewhere.deliveries.map(({ wabaId }) => wabaId)).not.toContain(WABA);
  }
});
