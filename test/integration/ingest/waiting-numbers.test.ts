import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  findAccountIdentity,
  listPhoneNumbers,
  savePhoneNumber,
} from '../../../src/features/accounts/accounts.ts';
import { listUnfollowedWabas } from '../../../src/features/accounts/followed-numbers.ts';
import { setAccessToken } from '../../../src/features/accounts/wabas.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { applyRetention } from '../../../src/ops/erasures/retention/expired-days.ts';
import { OPERATOR_COMMAND } from '../../../src/platform/audit/audit.ts';
import type { UpstreamPhoneNumber } from '../../../src/platform/graph/graph-calls.ts';
import { GraphError } from '../../../src/platform/graph/graph-error.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { ensureNumberSchedule, numberScheduleId } from '../../../src/worker/number-schedule.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { drainInbox, storedEvents, takeIn } from '../../support/take-in.ts';
import { type FreshTenant, freshTenant, testSecretBox } from '../../support/test-accounts.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import {
  fieldBody,
  listed,
  type NumberStack,
  setToken,
  startNumberStack,
  textsBody,
} from './number-stack.ts';

let stack: NumberStack;
let tenant: FreshTenant;
let firstBody: string;

beforeAll(async () => {
  stack = await startNumberStack();
});
afterAll(() => stack?.stop());

beforeEach(async () => {
  const { database } = stack;
  tenant = await freshTenant(database);
  await setToken(database, tenant.wabaId, 'EAAG-token');
  answerWith();
  const [row] = await query<{ id: string }>(database, 'select coalesce(max(id), 0) + 1 as id from inbox');
  firstBody = row?.id ?? '';
});

/** A number that upstream gives the tenant later. */
const newNumber = (n: number) => `${tenant.number}99${n}`;

/** Has upstream list the tenant's numbers, and these. */
function answerWith(...more: UpstreamPhoneNumber[]): void {
  stack.answer(tenant.wabaId, async () => [listed(tenant.number), listed(tenant.secondNumber), ...more]);
}

/** Of what upstream lists, what is shown of a number. */
function kept(...number: Parameters<typeof listed>) {
  const { phoneNumberId, displayPhoneNumber, verifiedName, qualityRating } = listed(...number);
  return { phoneNumberId, displayPhoneNumber, verifiedName, qualityRating };
}

const texts = (...all: Parameters<typeof textsBody>[1][]) => textsBody(tenant.wabaId, ...all);

async function tasks(): Promise<number> {
  const open = 'select 1 from workflow_tasks where waba_id = :wabaId';
  return (await query(stack.database, open, { wabaId: tenant.wabaId })).length;
}

async function eventIds(wanted: RegExp): Promise<string[]> {
  const events = await storedEvents(stack.database);
  const own = events.filter(({ wabaId, eventId }) => wabaId === tenant.wabaId && wanted.test(eventId));
  return own.map(({ eventId }) => eventId);
}

/** Of the bodies of the test that are not done. */
async function states(): Promise<string[]> {
  const rows = await query<{ state: string }>(
    stack.database,
    `select state from inbox where id >= :firstBody and state <> 'done' order by id`,
    { firstBody },
  );
  return rows.map(({ state }) => state);
}

/** The tenant's WABA among those whose numbers cannot be followed. */
async function unfollowed() {
  const all = await listUnfollowedWabas(stack.database, 100);
  return all.filter(({ wabaId }) => wabaId === tenant.wabaId);
}

describe('a number that we do not know, of a WABA that we know', () => {
  test('is looked up and added; what waited comes in its order, before what comes later, and known numbers do not wait', async () => {
    const { database } = stack;
    const { wabaId, number: known, secondNumber } = tenant;
    const number = newNumber(1);
    let answer = (): void => {};
    const asked = new Promise<void>((resolve) => {
      stack.answer(wabaId, async () => {
        resolve();
        await new Promise<void>((go) => {
          answer = go;
        });
        return [listed(known), listed(secondNumber), listed(number, 'New shop')];
      });
    });
    const both = texts({ id: 'a0', phoneNumberId: number }, { id: 'a-known', phoneNumberId: known });
    await takeIn(database, both, texts({ id: 'a1', phoneNumberId: number }));
    await asked;
    expect(await states()).toEqual(['waiting', 'waiting']);
    expect(await eventIds(/^a/)).toEqual(['a-known']);
    for (let n = 2; n < 40; n += 1) await takeIn(database, texts({ id: `a${n}`, phoneNumberId: number }));
    // These are there, and not taken in, when the number is added.
    const late = Array.from({ length: 5 }, (_, n) => texts({ id: `a${40 + n}`, phoneNumberId: number }));
    await insertBodies(database, late);
    const before = stack.asked(wabaId);
    answer();
    await eventually('the look-up is done', tasks, { is: 0 });
    await drainInbox(database);
    expect(await eventIds(/^a\d/)).toEqual(Array.from({ length: 45 }, (_, n) => `a${n}`));
    expect(await eventIds(/^a-known/)).toEqual(['a-known']);
    expect(stack.asked(wabaId)).toBe(before);
    expect(await states()).toEqual([]);
    const identity = await findAccountIdentity(database, tenant.wabaId);
    expect(identity?.phoneNumbers).toContainEqual(kept(number, 'New shop'));
    expect(
      await query(database, 'select 1 from quarantine_counts where waba_id = :wabaId', { wabaId }),
    ).toEqual([]);
    await takeIn(database, texts({ id: 'a-after', phoneNumberId: number }));
    expect(await eventIds(/^a-after/)).toEqual(['a-after']);
  });

  test('waits without a token for as long as it takes, for everybody to see, and is added when there is one', async () => {
    const { database } = stack;
    const number = newNumber(2);
    answerWith(listed(number));
    await setToken(database, tenant.wabaId, null);
    await takeIn(
      database,
      texts({ id: 'b0', phoneNumberId: number }, { id: 'b-known', phoneNumberId: tenant.number }),
    );
    await eventually('it shows', async () => (await unfollowed())[0]?.problem !== null);
    expect(await unfollowed()).toMatchObject([
      { wabaId: tenant.wabaId, waiting: 1, problem: expect.stringMatching(/no upstream access token/) },
    ]);
    await agedBy(60);
    await execute(database, 'delete from dedup_keys');
    await applyRetention({ database, logger: silentLogger }, { inbox: 14, events: 0, attempts: 0 });
    expect(await states()).toEqual(['waiting']);
    const tools = { database, secretBox: testSecretBox, actor: OPERATOR_COMMAND };
    await setAccessToken(tools, tenant.wabaId, 'EAAG-another-token');
    await eventually('the look-up is done', tasks, { is: 0 });
    await drainInbox(database);
    expect(await eventIds(/^b/)).toEqual(['b-known', 'b0']);
    expect(await unfollowed()).toEqual([]);
  });

  /** Moves what is in the inbox to another day. */
  async function agedBy(days: number): Promise<void> {
    const { database } = stack;
    const day = `(now() at time zone 'utc')::date - ${days}`;
    await query(database, `select ensure_partitions(${day}, ${day})`);
    await execute(
      database,
      `update inbox set received_day = ${day} where id >= :firstBody and state = 'waiting'`,
      { firstBody },
    );
    await execute(database, `update waiting_bodies set received_day = ${day} where waba_id = :wabaId`, {
      wabaId: tenant.wabaId,
    });
  }

  test('that upstream does not list is quarantined with the reason, and taken in should it be listed later', async () => {
    const { database } = stack;
    const number = newNumber(3);
    await takeIn(database, texts({ id: 'c0', phoneNumberId: number }));
    await eventually('it is decided', tasks, { is: 0 });
    const [kept] = await query<{ state: string; notes: { reason: string }[] }>(
      database,
      `select state, notes from inbox where id >= :firstBody and state <> 'done'`,
      { firstBody },
    );
    expect(kept).toMatchObject({ state: 'quarantined', notes: [{ reason: 'phone_number_not_of_waba' }] });
    const counts = 'select reason, count::integer from quarantine_counts where waba_id = :wabaId';
    expect(await query(database, counts, { wabaId: tenant.wabaId })).toEqual([
      { reason: 'phone_number_not_of_waba', count: 1 },
    ]);
    answerWith(listed(number));
    await execute(database, 'update wabas set numbers_asked_at = null where waba_id = :wabaId', {
      wabaId: tenant.wabaId,
    });
    await takeIn(database, texts({ id: 'c1', phoneNumberId: number }));
    await eventually('the look-up is done', tasks, { is: 0 });
    await drainInbox(database);
    expect(await eventIds(/^c/)).toEqual(['c0', 'c1']);
  });

  test('is never taken from another WABA, and upstream is asked once for a flood, again slowly', async () => {
    const { database } = stack;
    const { wabaId } = tenant;
    const other = await freshTenant(database, 'Fixture Bazaar');
    stack.answer(wabaId, async () => {
      throw new GraphError({ httpStatus: 401, code: 190, subcode: null, message: 'gone', transient: false });
    });
    const flood = Array.from({ length: 300 }, (_, n) =>
      texts({ id: `d${n}`, phoneNumberId: newNumber(4 + (n % 2)) }),
    );
    for (let n = 0; n < flood.length; n += 30) await takeIn(database, ...flood.slice(n, n + 30));
    await eventually('upstream is asked', () => stack.asked(wabaId) > 0);
    expect(stack.asked(wabaId)).toBeLessThan(5);
    // Of which people are told, until there is another token.
    await eventually('the refused token is noted', async () => (await refusedTokens()).length > 0);
    expect(await refusedTokens()).toEqual([{ token_problem: 'gone' }]);
    answerWith(listed(newNumber(4)), listed(other.number, 'Stolen'));
    await setAccessToken(
      { database, secretBox: testSecretBox, actor: OPERATOR_COMMAND },
      tenant.wabaId,
      'EAAG-new',
    );
    await eventually('the look-up is done', tasks, { is: 0 });
    await drainInbox(database);
    expect(await eventIds(/^d/)).toHaveLength(150);
    expect(await refusedTokens()).toEqual([]);
    expect(await listPhoneNumbers(database, other.wabaId)).toContainEqual(
      expect.objectContaining({ phoneNumberId: other.number, verifiedName: 'Fixture Bazaar' }),
    );
    expect(await unfollowed()).toMatchObject([
      { wabaId: tenant.wabaId, problem: expect.stringMatching(new RegExp(`${other.number}.*another WABA`)) },
    ]);
  });

  test('of a body that waits for a token: with the token comes nothing for the WABA that has the number by then', async () => {
    const { database } = stack;
    const other = await freshTenant(database);
    const [own, victim] = [newNumber(6), newNumber(7)];
    await setToken(database, tenant.wabaId, null);
    const forged = texts({ id: 'g-own', phoneNumberId: own }, { id: 'g-forged', phoneNumberId: victim });
    await insertBodies(database, [{ body: forged, signedFor: [tenant.wabaId] }]);
    await drainInbox(database);
    await eventually('it shows', async () => (await unfollowed())[0]?.problem !== null);
    expect(await states()).toEqual(['waiting']);
    await savePhoneNumber(database, other.wabaId, listed(victim));
    answerWith(listed(own));
    await setAccessToken(
      { database, secretBox: testSecretBox, actor: OPERATOR_COMMAND },
      tenant.wabaId,
      'EAAG-new',
    );
    await eventually('the look-up is done', tasks, { is: 0 });
    await drainInbox(database);
    expect(await eventIds(/^g/)).toEqual(['g-own']);
    expect(await states()).toEqual(['quarantined']);
  });

  test('of a WABA that nobody has is quarantined at once', async () => {
    await takeIn(stack.database, textsBody('900000000000909', { id: 'e0', phoneNumberId: newNumber(8) }));
    expect(await states()).toEqual(['quarantined']);
    expect(await tasks()).toBe(0);
  });
});

const refusedTokens = () =>
  query(
    stack.database,
    'select token_problem from wabas where waba_id = :wabaId and token_refused_at is not null',
    { wabaId: tenant.wabaId },
  );

describe('numbers, names and quality', () => {
  test.each(['phone_number_quality_update', 'phone_number_name_update', 'account_update'])(
    'follow upstream when it tells %s',
    async (field) => {
      const { database } = stack;
      const name = `Store after ${field}`;
      const { wabaId, number, secondNumber } = tenant;
      stack.answer(wabaId, async () => [{ ...listed(number, name), qualityRating: 'RED' }]);
      await takeIn(database, fieldBody(field, wabaId), fieldBody(field, '900000000000909'));
      await eventually('the look-up is done', tasks, { is: 0 });
      const identity = await findAccountIdentity(database, tenant.wabaId);
      expect(identity?.phoneNumbers).toEqual([{ ...kept(number, name), qualityRating: 'RED' }]);
      await takeIn(database, texts({ id: `f-${field}`, phoneNumberId: secondNumber }));
      expect(await eventIds(new RegExp(`^f-${field}`))).toHaveLength(1);
    },
  );

  test('follow upstream daily, by a schedule that is made once', async () => {
    const { database, client, taskQueue } = stack;
    stack.answer(tenant.wabaId, async () => [listed(tenant.number, 'Next day')]);
    await ensureNumberSchedule({ client, taskQueue });
    await ensureNumberSchedule({ client, taskQueue });
    const schedule = client.schedule.getHandle(numberScheduleId(taskQueue));
    const { spec, action } = await schedule.describe();
    expect(spec.intervals).toMatchObject([{ every: 86_400_000 }]);
    expect(action).toMatchObject({ workflowType: 'refreshAllNumbers' });
    await schedule.trigger();
    await eventually('a look-up is asked for', tasks, { is: 1 });
    const [task] = await query<{ soon: boolean }>(
      database,
      `select next_start_at between now() and now() + interval '30 minutes' as soon
         from workflow_tasks where waba_id = :wabaId`,
      { wabaId: tenant.wabaId },
    );
    expect(task?.soon).toBe(true);
    await execute(database, 'update workflow_tasks set next_start_at = now() where waba_id = :wabaId', {
      wabaId: tenant.wabaId,
    });
    await eventually('the look-up is done', tasks, { is: 0 });
    expect(await listPhoneNumbers(database, tenant.wabaId)).toEqual([kept(tenant.number, 'Next day')]);
    await schedule.delete();
  });
});
