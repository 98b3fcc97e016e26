import { Type } from 'typebox';
import {
  readUsage,
  USAGE_GROUPS,
  type UsageGroup,
  type UsageOwner,
  usageAsOf,
} from '../../features/messages/usage-days.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { invalidValue } from '../../platform/request-input.ts';
import { closed, count, dateTime, named, nullable, optionalParameter, text } from '../external/schema-kit.ts';
import { restOperation } from '../operations/operation.ts';

const DAY_MS = 86_400_000;
/** Thirteen months. */
const MAX_DAYS = 400;
const USUAL_DAYS = 30;
/** Statuses and reports come as late as this. */
const FINAL_AFTER_DAYS = 8;
const MAX_ROWS = 10_000;

const Day = Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$' });

const GROUPS = Object.keys(USAGE_GROUPS).join('|');

/** Which days are asked for, and how they are added up. */
export const USAGE_PERIOD = {
  from: optionalParameter(Day, 'The first UTC day; 29 days before `to` unless given.', '2026-11-01'),
  to: optionalParameter(Day, 'The last UTC day; today unless given.', '2026-11-30'),
  granularity: optionalParameter(Type.Enum(['day', 'month']), '`day` unless given.', 'month'),
};

const UsageQuery = closed({
  ...USAGE_PERIOD,
  groupBy: optionalParameter(
    Type.String({ pattern: `^(?:${GROUPS})(?:,(?:${GROUPS})){0,3}$` }),
    'Any of `phoneNumberId`, `category`, `pricingType`, `country`, with commas between them.',
    'category,country',
  ),
});

const group = (example: string) => Type.Optional(nullable(Type.String(), example));

const UsageCost = named('UsageCost', {
  amount: text('12.34'),
  currency: nullable(Type.String(), 'USD'),
  volume: count(1_234),
  source: Type.Literal('upstream'),
  reportedAt: dateTime(),
});

const USAGE_STATE = {
  asOf: nullable(dateTime(), '2026-11-21T09:30:00.000Z'),
  isFinal: Type.Boolean({ examples: [true] }),
};

const ROW_MEMBERS = {
  day: text('2026-11-20'),
  phoneNumberId: group('800000000000111'),
  category: group('marketing'),
  pricingType: group('regular'),
  country: group('DE'),
  sent: count(1_300),
  delivered: count(1_234),
  read: count(1_001),
  failed: count(12),
  billable: count(1_234),
  received: count(310),
  cost: nullable(UsageCost),
};

const MessageUsage = named('MessageUsage', {
  ...USAGE_STATE,
  rows: Type.Array(named('MessageUsageRow', ROW_MEMBERS)),
});

export const TenantUsage = named('TenantUsage', {
  ...USAGE_STATE,
  rows: Type.Array(
    named('TenantUsageRow', {
      ...ROW_MEMBERS,
      userId: Type.Optional(count(7)),
      externalId: Type.Optional(nullable(Type.String(), 'acme')),
    }),
  ),
});

/** Throws RequestError `invalid_value`. */
function dayOf(param: string, day: string): number {
  const ms = Date.parse(`${day}T00:00:00Z`);
  if (Number.isFinite(ms) && isoDay(ms) === day) return ms;
  throw invalidValue('The parameter must be a day such as 2026-11-30.', param);
}

function isoDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** The days that a query asks for; throws RequestError `invalid_value`. */
function usagePeriod(query: { from?: string | undefined; to?: string | undefined }): {
  from: string;
  to: string;
  isFinal: boolean;
} {
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  const to = query.to === undefined ? today : dayOf('to', query.to);
  const from = query.from === undefined ? to - (USUAL_DAYS - 1) * DAY_MS : dayOf('from', query.from);
  if (from > to) throw invalidValue('The day `from` is after the day `to`.', 'from');
  if (to - from >= MAX_DAYS * DAY_MS)
    throw invalidValue(`From the first to the last day may be ${MAX_DAYS} days.`, 'from');
  return { from: isoDay(from), to: isoDay(to), isFinal: to < today - FINAL_AFTER_DAYS * DAY_MS };
}

export function groupsOf(groupBy: string | undefined): UsageGroup[] {
  const asked = new Set(groupBy?.split(','));
  return (Object.keys(USAGE_GROUPS) as UsageGroup[]).filter((name) => asked.has(name));
}

export const getMessageUsage = restOperation({
  id: 'getMessageUsage',
  method: 'GET',
  path: '/api/external/usage/messages',
  scope: 'read',
  summary: 'Count messages by day',
  description:
    'How many messages of the WABA were sent, delivered, read, failed and received on each UTC day, each counted once. They follow the statuses that upstream ' +
    'reports, with the time of the status; a later status implies the earlier ones. `billable`: delivered, and upstream charges for it. ' +
    'A group of null was not reported; received messages have no category and no pricing type. `cost` is the amount that upstream reports once a day, and null where it ' +
    'reports none: the service computes no amounts. Counts are complete up to `asOf`, and `isFinal` when no late statuses are expected. Erasing a customer changes no count. Days are kept for 14 months.',
  tag: 'Account',
  query: UsageQuery,
  answers: { 200: { schema: MessageUsage, description: 'The counts, by day and group.' } },
  run: async ({ database, wabaId }, query) => await usageOf(database, { wabaId }, query),
});

type AskedUsage = { from?: string; to?: string; granularity?: 'day' | 'month'; groupBy?: string };

/** The counts that a query asks for. Throws RequestError `invalid_value`. */
export async function usageOf(
  database: Database,
  owner: UsageOwner,
  { granularity = 'day', groupBy, ...period }: AskedUsage,
) {
  const { isFinal, ...between } = usagePeriod(period);
  const question = { ...owner, ...between, granularity, groupBy: groupsOf(groupBy) };
  const asOf = await usageAsOf(database);
  const rows = await readUsage(database, question, MAX_ROWS + 1);
  if (rows.length > MAX_ROWS)
    throw invalidValue(`There are more than ${MAX_ROWS} rows: ask for fewer days or groups.`, 'groupBy');
  return {
    asOf,
    isFinal,
    rows: rows.map(({ cost, ...row }) => ({
      ...row,
      cost: cost && { ...cost, source: 'upstream' as const },
    })),
  };
}
