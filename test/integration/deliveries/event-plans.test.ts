import { expect, test } from 'vitest';
import { type EventFilter, listEvents } from '../../../src/features/delivery-log/events.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { NUMBER, OTHER_WABA, WABA } from '../api/api-harness.ts';

const ANY: EventFilter = {
  eventTypes: null,
  eventId: null,
  phoneNumberId: null,
  deliveryState: null,
  sinceMs: null,
  untilMs: null,
};
const EVENTS = 40_000;
/** Two whole days before today: of a day with a handful of events a plan may well read all of them. */
const UNTIL = "date_trunc('day', now() at time zone 'utc') at time zone 'utc'";

type Plan = { 'Actual Rows': number; 'Actual Loops': number; Plans?: Plan[] };

/** Runs each statement, and notes the most rows that a step of its plan has to do with. */
function watching(database: Database) {
  const seen = { most: 0 };
  const raw: Database['raw'] = async (text, bindings) => {
    const { rows } = await database.raw(`explain (analyze, format json) ${text}`, bindings);
    const visit = (plan: Plan) => {
      seen.most = Math.max(seen.most, plan['Actual Rows'] * plan['Actual Loops']);
      for (const child of plan.Plans ?? []) visit(child);
    };
    visit(rows[0]['QUERY PLAN'][0].Plan);
    return await database.raw(text, bindings);
  };
  return { seen, database: { ...database, raw } };
}

test('a page of events touches about as many rows as it shows, however many there are and whoever has more', async () => {
  const { database } = await seededDatabase();
  await database.raw(
    `insert into events (day, id, waba_id, tenant_id, phone_number_id, event_type, event_id, lane, sequence, body)
     select (at at time zone 'utc')::date,
            cast(lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7000' || '8000'
                 || lpad(to_hex(n), 12, '0') as uuid),
            w.waba_id, w.tenant_id, '${NUMBER}', 'message', 'e' || n, 'e' || n, 1, '{}'
       from generate_series(1, ${EVENTS}) n
       cross join lateral (select ${UNTIL} - (n - 0.5) * (interval '48 hours' / ${EVENTS}) as at) t
       join wabas w on w.waba_id = case when n % 1000 = 0 then '${OTHER_WABA}' else '${WABA}' end`,
  );
  await database.raw('vacuum analyze events');
  const { rows } = await database.raw(`select extract(epoch from ${UNTIL}) * 1000 as ms`);
  const sinceMs = Number(rows[0].ms) - 20 * 3_600_000;
  for (const wabaId of [WABA, OTHER_WABA]) {
    for (const order of ['asc', 'desc'] as const) {
      for (const filter of [ANY, { ...ANY, sinceMs }, { ...ANY, eventId: 'e7' }]) {
        const watched = watching(database);
        const first = await listEvents(watched.database, wabaId, filter, { order, afterId: null, limit: 25 });
        const walk = { order, afterId: first.position, limit: 25 };
        await listEvents(watched.database, wabaId, filter, walk);
        expect(watched.seen.most).toBeLessThanOrEqual(26);
      }
    }
  }
});
