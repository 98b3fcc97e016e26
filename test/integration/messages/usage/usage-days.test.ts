import { expect, test } from 'vitest';
import { createBill } from '../../../../dev/sandbox/bill.ts';
import { DEMO_PHONE_NUMBERS } from '../../../../dev/sandbox/demo-accounts.ts';
import { buildMessageStatus } from '../../../../dev/sandbox/payloads/message-status.ts';
import {
  type JsonObject,
  serializeWebhookBody,
  webhookBody,
} from '../../../../dev/sandbox/payloads/webhook-body.ts';
import {
  makeUsageFolding,
  readUsage,
  USAGE_GROUPS,
  type UsageGroup,
  type UsageRow,
} from '../../../../src/features/messages/usage-days.ts';
import { eraseCustomer } from '../../../../src/ops/erasures/erasures.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { ACCOUNT, bodyOf, paymentStatus, type UpstreamItem } from '../../../support/load/upstream-bodies.ts';
import { seededDice } from '../../../support/seeded-dice.ts';
import { takeIn } from '../../../support/take-in.ts';
import { seededDatabase } from '../../../support/test-database.ts';
import { startErasureWorld } from '../../erasures/erasure-world.ts';

const NEVER = new AbortController().signal;
const { wabaId } = ACCOUNT;
const ALL_GROUPS = Object.keys(USAGE_GROUPS).filter((name): name is UsageGroup => name in USAGE_GROUPS);
const DAY_S = 86_400;
/** A midnight in UTC, some days ago. */
const MIDNIGHT_S = Math.floor(Date.now() / 1_000 / DAY_S) * DAY_S - 4 * DAY_S;
const dayOf = (seconds: number) => new Date(seconds * 1_000).toISOString().slice(0, 10);

/** All counts of the days around, by group. */
async function usageOf(database: Database, groupBy: readonly UsageGroup[] = []): Promise<UsageRow[]> {
  await makeUsageFolding(database)(NEVER);
  const between = { from: dayOf(MIDNIGHT_S - 40 * DAY_S), to: dayOf(MIDNIGHT_S + 6 * DAY_S) };
  return await readUsage(database, { wabaId, ...between, granularity: 'day', groupBy }, 10_000);
}

const NONE = { sent: 0, delivered: 0, read: 0, failed: 0, billable: 0, received: 0 };
const day = dayOf(MIDNIGHT_S);

async function withAccounts(): Promise<Database> {
  const { database } = await seededDatabase();
  return database;
}

const RECIPIENTS = [
  { recipientId: '12025550143', country: 'US' },
  { recipientId: '14165550143', country: 'CA' },
  { recipientId: '919812345678', country: 'IN' },
  { recipientId: '4915550009182', country: 'DE' },
  { recipientId: '77015550143', country: 'KZ' },
];
const PRICES = [
  { billable: true, pricing_model: 'PMP', type: 'regular', category: 'marketing' },
  { billable: true, pricing_model: 'PMP', type: 'regular', category: 'authentication-international' },
  { pricing_model: 'PMP', type: 'regular', category: 'utility', billable: true },
  { billable: false, pricing_model: 'PMP', type: 'free_customer_service', category: 'service' },
  { billable: false, pricing_model: 'PMP', type: 'free_entry_point', category: 'referral_conversion' },
];
/** How messages go; one that fails after it was sent, with a price, is not charged. */
const WAYS = [
  ['sent', 'delivered', 'read'],
  ['sent', 'delivered'],
  ['sent', 'read'],
  ['sent', 'delivered', 'read', 'played'],
  ['sent', 'failed'],
  ['failed'],
  ['sent'],
  ['read'],
];
/** Minutes from UTC of the customers' midnights, around which they write. */
const ZONES_MIN = [0, 330, -480, 765];

function statusIn(body: JsonObject): JsonObject {
  const { entry } = body as { entry: { changes: { value: { statuses: JsonObject[] } }[] }[] };
  return entry[0]?.changes[0]?.value.statuses[0] ?? {};
}

test('10,000 messages with failures, free windows, repeats and midnights of all zones count as the platform bills them', async () => {
  const database = await withAccounts();
  const bill = createBill();
  const dice = seededDice(39);
  const pick = <One>(list: readonly One[]): One => list[Math.floor(dice() * list.length)] as One;
  const reports: { status: JsonObject; phone: (typeof DEMO_PHONE_NUMBERS)[number]; at: number }[] = [];
  const sums = { sent: 0, failed: 0, read: 0 };
  for (let n = 0; n < 10_000; n += 1) {
    const phone = pick(DEMO_PHONE_NUMBERS.filter((one) => one.wabaId === wabaId));
    const { recipientId, country } = pick(RECIPIENTS);
    const [way, price, zone] = [pick(WAYS), pick(PRICES), pick(ZONES_MIN)];
    const id = `wamid.bill${n}`;
    let at = MIDNIGHT_S + zone * 60 - 60 + Math.floor(dice() * 90) + Math.floor(dice() * 3) * DAY_S;
    let priced = 0;
    for (const status of way) {
      // Prices come with the first status and one of those after it.
      const pricing = status === 'failed' || priced >= 2 ? undefined : price;
      priced += pricing === undefined ? 0 : 1;
      const request = { id, status, recipientId, timestampSeconds: at, fields: { pricing } };
      const told = statusIn(buildMessageStatus(request, phone).body);
      bill.note({ id, status, timestamp: String(at), country, ...(pricing && { pricing }) }, phone);
      for (let copies = dice() < 0.1 ? 2 : 1; copies > 0; copies -= 1)
        reports.push({ status: told, phone, at: at + dice() * 300 });
      at += Math.floor(dice() * 90);
    }
    sums.sent += way.some((status) => status !== 'failed') ? 1 : 0;
    sums.failed += way.includes('failed') ? 1 : 0;
    sums.read += way.includes('read') ? 1 : 0;
  }
  // Refunds of payments are no messages.
  const payments = [1, 2].map((n) =>
    bodyOf(ACCOUNT, [paymentStatus(`wamid.pay${n}`, `ref${n}`, 'captured')]),
  );
  // They arrive in another order than they happen, some of them together.
  const arrived = reports.toSorted((one, other) => one.at - other.at);
  const bodies: Buffer[] = [];
  while (arrived.length > 0) {
    const together = Map.groupBy(arrived.splice(0, 1 + Math.floor(dice() * 40)), ({ phone }) => phone);
    for (const [phone, some] of together)
      bodies.push(serializeWebhookBody(webhookBody(phone, { statuses: some.map(({ status }) => status) })));
  }
  bodies.push(...payments);
  while (bodies.length > 0) await takeIn(database, ...bodies.splice(0, 100));

  const rows = await usageOf(database, ALL_GROUPS);
  const billed = new Map<string, number>();
  for (const point of bill.points(wabaId, { start: 0, end: Number.MAX_SAFE_INTEGER })) {
    const { start, phone_number, country, pricing_type, pricing_category, volume } = point;
    const number = DEMO_PHONE_NUMBERS.find(
      (one) => one.displayPhoneNumber.replaceAll(/\D/g, '') === phone_number,
    );
    const texts = [pricing_category, pricing_type].map((text) => String(text).toLowerCase());
    const key = [dayOf(Number(start)), number?.phoneNumberId, ...texts, country].join(' ');
    billed.set(key, (billed.get(key) ?? 0) + Number(volume));
  }
  const delivered = rows.filter((row) => row.delivered > 0);
  const counted = delivered.map((row) => [
    [row.day, row.phoneNumberId, row.category, row.pricingType, row.country].join(' '),
    row.delivered,
  ]);
  expect(Object.fromEntries(counted)).toEqual(Object.fromEntries(billed));
  expect(billed.size).toBeGreaterThan(100);
  for (const row of delivered) expect(row.billable).toBe(row.pricingType === 'regular' ? row.delivered : 0);
  const sum = (name: keyof typeof sums) => rows.reduce((all, row) => all + row[name], 0);
  expect({ sent: sum('sent'), failed: sum('failed'), read: sum('read') }).toEqual(sums);
}, 600_000);

const statusOf = (id: string, status: string, more: Record<string, unknown> = {}): UpstreamItem => ({
  list: 'statuses',
  json: { id, status, timestamp: String(MIDNIGHT_S), recipient_id: '12025550143', ...more },
  events: [],
});
const MARKETING = {
  pricing: { billable: true, pricing_model: 'PMP', type: 'regular', category: 'marketing' },
};

test('in whatever order and batches, statuses of a message count what is known in the end', async () => {
  const database = await withAccounts();
  await takeIn(database, bodyOf(ACCOUNT, [statusOf('wamid.1', 'read')]));
  expect(await usageOf(database, ['category'])).toEqual([
    { day, category: null, ...NONE, sent: 1, delivered: 1, read: 1, cost: null },
  ]);
  // The price comes later, and with it the category.
  await takeIn(
    database,
    bodyOf(ACCOUNT, [statusOf('wamid.1', 'delivered', MARKETING), statusOf('wamid.1', 'sent')]),
  );
  // Upstream gave it up and delivered it all the same.
  await takeIn(database, bodyOf(ACCOUNT, [statusOf('wamid.2', 'failed')]));
  await takeIn(database, bodyOf(ACCOUNT, [statusOf('wamid.2', 'delivered', MARKETING)]));
  const known = {
    day,
    category: 'marketing',
    ...NONE,
    sent: 2,
    delivered: 2,
    read: 1,
    billable: 2,
    cost: null,
  };
  expect(await usageOf(database, ['category'])).toEqual([known]);
  for (const status of ['sent', 'delivered', 'read'])
    await takeIn(database, bodyOf(ACCOUNT, [statusOf('wamid.1', status, MARKETING)]));
  expect(await usageOf(database, ['category'])).toEqual([known]);
});

test('members of a group count each, and the message that upstream reports as sent for all of them once', async () => {
  const database = await withAccounts();
  const member = (waId: string) => ({
    recipient_id: 'Y2FwaV9ncm91cDoxMjAyNTU1MDEwMA',
    recipient_type: 'group',
    recipient_participant_id: waId,
    conversation: { id: 'c', pricing: { billable: true, category: 'group_marketing' } },
  });
  await takeIn(
    database,
    bodyOf(ACCOUNT, [
      statusOf('wamid.1', 'sent', {
        recipient_id: 'Y2FwaV9ncm91cDoxMjAyNTU1MDEwMA',
        recipient_type: 'group',
      }),
      statusOf('wamid.1', 'delivered', member('12025550143')),
      statusOf('wamid.1', 'read', member('4915550009182')),
    ]),
  );
  expect(await usageOf(database, ['category', 'country'])).toEqual([
    {
      day,
      category: 'group_marketing',
      country: 'DE',
      ...NONE,
      delivered: 1,
      read: 1,
      billable: 1,
      cost: null,
    },
    { day, category: 'group_marketing', country: 'US', ...NONE, delivered: 1, billable: 1, cost: null },
    { day, category: null, country: null, ...NONE, sent: 1, cost: null },
  ]);
});

test('erasing a customer changes no count, and neither does what upstream sends again', async () => {
  const { database, tools, erase } = await startErasureWorld();
  const written = { id: 'wamid.1', from: '12025550143', timestamp: String(MIDNIGHT_S), type: 'text' };
  const body = bodyOf(ACCOUNT, [
    { list: 'messages', json: { ...written, text: { body: 'hello' } }, events: [] },
    ...['sent', 'delivered', 'read'].map((status) => statusOf('wamid.2', status, MARKETING)),
  ]);
  await takeIn(database, body);
  const before = await usageOf(database, ALL_GROUPS);
  expect(before.map(({ read, received }) => read + received)).toEqual([1, 1]);
  await erase((await eraseCustomer(tools, wabaId, { phone: '12025550143' })).erasureId);
  expect(await query(database, 'select 1 from messages')).toEqual([]);
  expect(await usageOf(database, ALL_GROUPS)).toEqual(before);
  await takeIn(database, body);
  expect(await usageOf(database, ALL_GROUPS)).toEqual(before);
});

test('a status behind those that retention has deleted counts only what they did not', async () => {
  const database = await withAccounts();
  await takeIn(
    database,
    bodyOf(ACCOUNT, [statusOf('wamid.1', 'sent'), statusOf('wamid.1', 'delivered', MARKETING)]),
  );
  await execute(database, 'delete from message_statuses');
  await takeIn(database, bodyOf(ACCOUNT, [statusOf('wamid.1', 'read')]));
  expect(await usageOf(database)).toEqual([
    { day, ...NONE, sent: 1, delivered: 1, read: 1, billable: 1, cost: null },
  ]);
});

test('what customers write counts once, also behind its placeholder, and no status of a foreign shape stops intake', async () => {
  const database = await withAccounts();
  const message = (id: string, more: Record<string, unknown>): UpstreamItem => ({
    list: 'messages',
    json: { id, from: '12025550143', timestamp: String(MIDNIGHT_S), ...more },
    events: [],
  });
  await takeIn(
    database,
    bodyOf(ACCOUNT, [message('wamid.1', { type: 'unsupported', errors: [{ code: 131051 }] })]),
  );
  await takeIn(
    database,
    bodyOf(ACCOUNT, [
      message('wamid.1', { type: 'text', text: { body: 'hello' } }),
      message('wamid.2', { type: 'text', text: { body: '"pricing":{"billable":true}' } }),
      statusOf('wamid.3', 'delivered', {
        pricing: { billable: 'x', category: 7, type: '\u0000' },
        at: '\ud800',
      }),
      statusOf('wamid.4', 'delivered', { pricing: [], timestamp: '99999999999' }),
    ]),
  );
  const rows = await usageOf(database, ['country']);
  expect(rows.map(({ country, received, billable }) => ({ country, received, billable }))).toEqual([
    { country: 'US', received: 2, billable: 0 },
    { country: 'US', received: 0, billable: 0 },
  ]);
});
