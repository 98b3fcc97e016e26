import { beforeEach, expect, test } from 'vitest';
import { forgetOldHours, listSilentWabas, noteActivity } from '../../../src/ops/alerts/silence.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { uuidV7 } from '../../../src/platform/public-ids.ts';
import { type FreshTenant, freshTenant } from '../../support/test-accounts.ts';
import { databaseOfFile } from '../../support/test-database.ts';
import { addUser, openAlerts, turn } from './alerts-fixtures.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The beginning of a Monday of long ago: no event of the present disturbs. */
const MONDAY = Date.parse('2026-06-01T00:00:00Z');

const store = databaseOfFile(4);
let database: Database;
let tenant: FreshTenant;

beforeEach(async () => {
  ({ database } = store);
  await database.raw(
    `delete from waba_hours; delete from alerts; delete from users; delete from events; delete from inbox;
     delete from housekeeping_steps`,
  );
  tenant = await freshTenant(database);
});

/** Notes activity in hours of the four weeks before MONDAY and of `days` days from it on. */
async function activity(parts: number, isActive: (day: number, hour: number) => boolean, hours: number) {
  const active: Date[] = [];
  for (let at = MONDAY - 28 * DAY_MS; at < MONDAY + hours * HOUR_MS; at += HOUR_MS) {
    const date = new Date(at);
    if (isActive(date.getUTCDay(), date.getUTCHours())) active.push(date);
  }
  await execute(
    database,
    'insert into waba_hours (waba_id, hour, active) select :wabaId, hour, :parts from unnest(:active::timestamptz[]) as h (hour)',
    { wabaId: tenant.wabaId, parts, active },
  );
}

/** The hours after MONDAY, of the next `hours`, in which the WABA counts as silent although nothing is noted any more. */
async function silentHours(hours: number): Promise<number[]> {
  const silent: number[] = [];
  for (let hour = 0; hour < hours; hour += 1) {
    const found = await listSilentWabas(database, new Date(MONDAY + hour * HOUR_MS), 10);
    if (found.length > 0) silent.push(hour);
  }
  return silent;
}

const isOffice = (day: number, hour: number) => day >= 1 && day <= 5 && hour >= 8 && hour < 18;

test('a WABA that is busy round the clock is silent after two whole hours', async () => {
  await activity(6, () => true, 3);
  expect(await silentHours(6)).toEqual([5]);
});

test('nights and weekends are no silence; a Monday without its usual traffic is', async () => {
  await activity(4, isOffice, 0);
  // Nothing since Friday evening: noticed on Monday at 11, when three hours of each week before had traffic.
  expect((await silentHours(24))[0]).toBe(11);
});

test('a WABA that goes on as usual is never silent', async () => {
  await activity(4, isOffice, 8 * 24);
  expect(await silentHours(8 * 24)).toEqual([]);
});

test('with less than four weeks of history nothing is said', async () => {
  await activity(6, () => true, 0);
  await execute(database, 'delete from waba_hours where hour < :monday', {
    monday: new Date(MONDAY - 20 * DAY_MS),
  });
  expect(await silentHours(48)).toEqual([]);
});

test('a WABA with a few events a week needs a long silence', async () => {
  // One ten-minute part at noon of each day: ten a week on average take ten days, beyond what is compared.
  await activity(1, (_day, hour) => hour === 12, 0);
  expect(await silentHours(7 * 24)).toEqual([]);
});

test('activity is read from events, without test events, and a silent WABA ends being so with its first event', async () => {
  const hourMs = await busyUntilLately();
  const operator = await addUser(database, 'operator@example.com', 'operator');
  await addEvent(hourMs - HOUR_MS / 2, 'test');
  await turn(database);
  expect(await openAlerts(database, operator)).toEqual([`waba_silent ${tenant.wabaId}`]);
  // However long it lasts, and although the weeks that are compared begin to hold the silence.
  await execute(database, `delete from waba_hours where hour > now() - interval '9 days'`);
  await turn(database);
  expect(await openAlerts(database, operator)).toEqual([`waba_silent ${tenant.wabaId}`]);
  await addEvent(Date.now(), 'message');
  await turn(database);
  expect(await openAlerts(database, operator)).toEqual([]);
});

test('a WABA stays silent however long ago its last hour was', async () => {
  await busyUntilLately();
  const operator = await addUser(database, 'operator@example.com', 'operator');
  await turn(database);
  await execute(database, `update waba_hours set hour = hour - interval '36 days'`);
  expect(await forgetOldHours(database, 1_000)).toBe(29 * 24 - 5);
  expect(await forgetOldHours(database, 1_000)).toBe(0);
  await turn(database);
  expect(await openAlerts(database, operator)).toEqual([`waba_silent ${tenant.wabaId}`]);
});

test('while bodies wait for intake, silence begins and ends for none', async () => {
  await busyUntilLately();
  await execute(
    database,
    `insert into inbox (body, state, received_at) values ('{}', 'new', now() - interval '6 minutes')`,
  );
  const operator = await addUser(database, 'operator@example.com', 'operator');
  await turn(database);
  expect(await openAlerts(database, operator)).toEqual(['intake_backlog ']);
});

test('each hour is noted by its active parts, also after an absence', async () => {
  const hourMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
  await addEvent(hourMs - 3 * HOUR_MS + 60_000, 'message');
  await addEvent(hourMs - 3 * HOUR_MS + 120_000, 'status');
  await addEvent(hourMs - 3 * HOUR_MS + 3_000_000, 'status');
  await addEvent(hourMs - HOUR_MS, 'message');
  await addEvent(hourMs, 'message');
  await noteActivity(database, null, new Date(hourMs + 1));
  await noteActivity(database, new Date(hourMs - HOUR_MS), new Date(hourMs + 1));
  const noted = await query<{ hour: Date; active: number }>(
    database,
    'select hour, active from waba_hours order by hour',
  );
  expect(noted.map(({ hour, active }) => [(hour.getTime() - hourMs) / HOUR_MS, active])).toEqual([
    [-3, 2],
    [-1, 1],
  ]);
});

/** A WABA that was busy for weeks and has been silent for the last four hours; returns the beginning of this hour. */
async function busyUntilLately(): Promise<number> {
  const hourMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
  const first = hourMs - 29 * DAY_MS;
  const hours = Array.from({ length: 29 * 24 - 4 }, (_, index) => new Date(first + index * HOUR_MS));
  await execute(
    database,
    'insert into waba_hours (waba_id, hour, active) select :wabaId, hour, 6 from unnest(:hours::timestamptz[]) as h (hour)',
    { wabaId: tenant.wabaId, hours },
  );
  return hourMs;
}

async function addEvent(atMs: number, type: string): Promise<void> {
  await execute(
    database,
    `insert into events (day, id, waba_id, tenant_id, phone_number_id, event_type, event_id, lane, sequence)
     select :atMs, :atMs2, waba_id, tenant_id, '1', :type, 'x', 'x', 1 from wabas where waba_id = :wabaId`,
    { atMs: new Date(atMs).toISOString().slice(0, 10), atMs2: uuidV7(atMs), type, wabaId: tenant.wabaId },
  );
}
