import { expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { seededDice } from '../../../support/seeded-dice.ts';
import { takeIn } from '../../../support/take-in.ts';
import { databaseOfFile } from '../../../support/test-database.ts';
import { type Account, addAccounts, START_SECONDS } from './stored-state.ts';

/** Reports of one customer's wishes about marketing, in random orders: what is known after all of them is by their times alone. */

const STORIES = 60;
const ORDERS = 4;
const MAX_REPORTS = 7;
const PHONE = '12025550143';
const USER = 'US.10000000000000000143';

type Report = { kind: 'stop' | 'resume' | 'refused'; at: number; ids: { wa_id?: string; user_id?: string } };

/** Reports name the customer by either id or both; the first one links them. */
function storyOf(dice: () => number): Report[] {
  const seconds = Array.from({ length: 40 }, (_none, n) => n).sort(() => dice() - 0.5);
  return Array.from({ length: 4 + Math.floor(dice() * (MAX_REPORTS - 3)) }, (_none, index): Report => {
    const kind = (['stop', 'stop', 'refused', 'resume'] as const)[Math.floor(dice() * 4)] ?? 'stop';
    const by = index === 0 ? 2 : Math.floor(dice() * 3);
    const ids = { ...(by !== 1 && { wa_id: PHONE }), ...(by !== 0 && { user_id: USER }) };
    return { kind, at: seconds[index] ?? 0, ids };
  });
}

function bodyOf({ kind, at, ids }: Report, { wabaId, number, phone }: Account): Buffer {
  const metadata = { display_phone_number: phone, phone_number_id: number };
  const seconds = START_SECONDS + at;
  const wish = { ...ids, category: 'marketing_messages', value: kind, detail: 'x', timestamp: seconds };
  const status = {
    id: `wamid.${at}`,
    status: 'failed',
    timestamp: String(seconds),
    ...(ids.wa_id !== undefined && { recipient_id: ids.wa_id }),
    ...(ids.user_id !== undefined && { recipient_user_id: ids.user_id }),
    errors: [{ code: 131_050, title: 'No' }],
  };
  const [field, members] =
    kind === 'refused'
      ? ['messages', { statuses: [status] }]
      : ['user_preferences', { contacts: [ids], user_preferences: [wish] }];
  const value = { messaging_product: 'whatsapp', metadata, ...members };
  return Buffer.from(JSON.stringify({ entry: [{ id: wabaId, time: seconds, changes: [{ field, value }] }] }));
}

/** The latest report holds; a stop began with the first one since the last resume. */
function rightAfter(story: readonly Report[]): string[] {
  const sorted = story.toSorted((one, other) => one.at - other.at);
  const stops = sorted.slice(sorted.findLastIndex(({ kind }) => kind === 'resume') + 1);
  const source = stops.at(-1)?.kind === 'refused' ? 'error_131050' : 'upstream';
  return stops.length === 0 ? [] : [`${source} since ${stops[0]?.at}`];
}

const store = databaseOfFile();

test('four and more reports leave the same opt-out in every order, one by one and in one turn', async () => {
  const { database } = store;
  const dice = seededDice(37);
  const cases = Array.from({ length: STORIES }, () => storyOf(dice)).flatMap((story) =>
    Array.from({ length: ORDERS }, (_none, n) => {
      const order = n === 0 ? story : story.toSorted(() => dice() - 0.5);
      return { story, order, isTogether: n === ORDERS - 1 };
    }),
  );
  const accounts = await addAccounts(database, cases.length);
  const given = cases.flatMap((one, index) =>
    accounts.slice(index, index + 1).map((account) => ({ ...one, account })),
  );
  for (let turn = 0; turn < MAX_REPORTS; turn += 1) {
    const due = given.flatMap(({ order, isTogether, account }) =>
      (isTogether ? (turn === 0 ? order : []) : order.slice(turn, turn + 1)).map((one) =>
        bodyOf(one, account),
      ),
    );
    await takeIn(database, ...due);
  }
  const rows = await query<{ wabaId: string; source: string; since: Date }>(
    database,
    'select waba_id as "wabaId", source, since from opt_outs where is_stop',
  );
  const wrong = given.flatMap(({ story, order, account }) => {
    const known = rows
      .filter(({ wabaId }) => wabaId === account.wabaId)
      .map(({ source, since }) => `${source} since ${since.getTime() / 1_000 - START_SECONDS}`);
    const right = rightAfter(story);
    if (JSON.stringify(known) === JSON.stringify(right)) return [];
    return [{ order: order.map(({ kind, at }) => `${kind} ${at}`).join(', '), known, right }];
  });
  expect(wrong).toEqual([]);
  const told = await query<{ wabaId: string; state: string }>(
    database,
    `select distinct on (waba_id) waba_id as "wabaId", convert_from(body, 'UTF8')::jsonb #>> '{data,state}' as state
       from events where event_type = 'preference' order by waba_id, created_at desc, ctid desc`,
  );
  const lastOf = new Map(told.map(({ wabaId, state }) => [wabaId, state]));
  // Whatever came in between, the last event of a customer says what holds.
  expect(given.map(({ account }) => lastOf.get(account.wabaId))).toEqual(
    given.map(({ story }) => (rightAfter(story).length === 0 ? 'resume' : 'stop')),
  );
});
