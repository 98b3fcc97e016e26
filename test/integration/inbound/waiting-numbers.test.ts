import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { findAccountIdentity, listPhoneNumbers, savePhoneNumber } from '../../../src/accounts/accounts.ts';
import { listUnfollowedWabas } from '../../../src/accounts/followed-numbers.ts';
import { setAccessToken } from '../../../src/accounts/wabas.ts';
import { insertBodies } from '../../../src/inbound/inbox.ts';
import { OPERATOR_COMMAND } from '../../../src/platform/audit/audit.ts';
import { GraphError } from '../../../src/platform/graph/graph-error.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { applyRetention } from '../../../src/worker/housekeeping/expired-days.ts';
import { ensureNumberSchedule, numberScheduleId } from '../../../src/worker/number-schedule.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { drainInbox, storedEvents, takeIn } from '../../support/take-in.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import {
  fieldBody,
  listed,
  NEW_NUMBER,
  NUMBER,
  type NumberStack,
  OTHER_WABA,
  SECOND_NUMBER,
  setToken,
  startNumberStack,
  textsBody,
  WABA,
} from './number-stack.ts';

let stack: NumberStack;
const OWN = [listed(NUMBER), listed(SECOND_NUMBER)];

beforeAll(async () => {
  stack = await startNumberStack();
}, 60_000);
afterAll(() => stack?.stop());

/** A WABA as the fixtures have it, with a token, of which nothing has come. */
beforeEach(async () => {
  const { database } = stack;
  await eventually('no look-up is under way', async () => {
    await execute(database, `delete from waiting_bodies`);
    return (await tasks()) === 0;
  });
  await execute(database, `update inbox set state = 'done', notes = null`);
  await execute(database, 'update wabas set numbers_asked_at = null, numbers_problem = null');
  await execute(database, 'delete from quarantine_counts');
  await setToken(database, WABA, 'EAAG-token');
  stack.answer(async () => OWN);
});

async function tasks(): Promise<number> {
  return (await query(stack.database, 'select 1 from workflow_tasks')).length;
}

async function eventIds(wanted: RegExp): Promise<string[]> {
  const events = await storedEvents(stack.database);
  return events.map(({ eventId }) => eventId).filter((id) => wanted.test(id));
}

async function states(): Promise<string[]> {
  const rows = await query<{ state: string }>(
    stack.database,
    `select state from inbox where state <> 'done' order by id`,
  );
  return rows.map(({ state }) => state);
}

describe('a number that we do not know, of a WABA that we know', () => {
  test('is looked up and added; what waited comes in its order, before what comes later, and known numbers do not wait', async () => {
    const { database } = stack;
    const number = `${NEW_NUMBER}1`;
    let answer = (): void => {};
    const asked = new Promise<void>((resolve) => {
      stack.answer(async () => {
        resolve();
        await new Promise<void>((go) => {
          answer = go;
        });
        return [...OWN, listed(number, 'New shop')];
      });
    });
    const both = textsBody({ id: 'a0', phoneNumberId: number }, { id: 'a-known', phoneNumberId: NUMBER });
    await takeIn(database, both, textsBody({ id: 'a1', phoneNumberId: number }));
    await asked;
    expect(await states()).toEqual(['waiting', 'waiting']);
    expect(await eventIds(/^a/)).toEqual(['a-known']);
    for (let n = 2; n < 40; n += 1) await takeIn(database, textsBody({ id: `a${n}`, phoneNumberId: number }));
    // These are there, and not taken in, when the number is added.
    const late = Array.from({ length: 5 }, (_, n) => textsBody({ id: `a${40 + n}`, phoneNumberId: number }));
    await insertBodies(database, late);
    const before = stack.asked();
    answer();
    await eventually('the look-up is done', tasks, { is: 0 });
    await drainInbox(database);
    expect(await eventIds(/^a\d/)).toEqual(Array.from({ length: 45 }, (_, n) => `a${n}`));
    expect(await eventIds(/^a-known/)).toEqual(['a-known']);
    expect(stack.asked()).toBe(before);
    expect(await states()).toEqual([]);
    const identity = await findAccountIdentity(database, WABA);
    expect(identity?.phoneNumbers).toContainEqual(listed(number, 'New shop'));
    expect(await query(database, 'select 1 from quarantine_counts')).toEqual([]);
    await takeIn(database, textsBody({ id: 'a-after', phoneNumberId: number }));
    expect(await eventIds(/^a-after/)).toEqual(['a-after']);
  });

  test('waits without a token for as long as it takes, for everybody to see, and is added when there is one', async () => {
    const { database } = stack;
    const number = `${NEW_NUMBER}2`;
    stack.answer(async () => [...OWN, listed(number)]);
    await setToken(database, WABA, null);
    await takeIn(
      database,
      textsBody({ id: 'b0', phoneNumberId: number }, { id: 'b-known', phoneNumberId: NUMBER }),
    );
    await eventually('it shows', async () => (await listUnfollowedWabas(database, 10))[0]?.problem !== null);
    expect(await listUnfollowedWabas(database, 10)).toMatchObject([
      { wabaId: WABA, waiting: 1, problem: expect.stringMatching(/no upstream access token/) },
    ]);
    await agedBy(60);
    await execute(database, 'delete from dedup_keys');
    await applyRetention({ database, logger: silentLogger }, { inbox: 14, events: 0, attempts: 0 });
    expect(await states()).toEqual(['waiting']);
    const tools = { database, secretBox: testSecretBox, actor: OPERATOR_COMMAND };
    await setAccessToken(tools, WABA, 'EAAG-another-token');
    await eventually('the look-up is done', tasks, { is: 0 });
    await drainInbox(database);
    expect(await eventIds(/^b/)).toEqual(['b-known', 'b0']);
    expect(await listUnfollowedWabas(database, 10)).toEqual([]);
  });

  /** Moves what is in the inbox to another day. */
  async function agedBy(days: number): Promise<void> {
    const { database } = stack;
    const day = `(now() at time zone 'utc')::date - ${days}`;
    await query(database, `select ensure_partitions(${day}, ${day})`);
    await execute(database, `update inbox set received_day = ${day} where state = 'waiting'`);
    await execute(database, `update waiting_bodies set received_day = ${day}`);
  }

  test('that upstream does not list is quarantined with the reason, and taken in should it be listed later', async () => {
    const { database } = stack;
    const number = `${NEW_NUMBER}3`;
    await takeIn(database, textsBody({ id: 'c0', phoneNumberId: number }));
    await eventually('it is decided', tasks, { is: 0 });
    const [kept] = await query<{ state: string; notes: { reason: string }[] }>(
      database,
      `select state, notes from inbox where state <> 'done'`,
    );
    expect(kept).toMatchObject({ state: 'quarantined', notes: [{ reason: 'phone_number_not_of_waba' }] });
    expect(await query(database, 'select reason, waba_id, count::integer from quarantine_counts')).toEqual([
      { reason: 'phone_number_not_of_waba', waba_id: WABA, count: 1 },
    ]);
    stack.answer(async () => [...OWN, listed(number)]);
    await execute(database, 'update wabas set numbers_asked_at = null');
    await takeIn(database, textsBody({ id: 'c1', phoneNumberId: number }));
    await eventually('the look-up is done', tasks, { is: 0 });
    await drainInbox(database);
    expect(await eventIds(/^c/)).toEqual(['c0', 'c1']);
  });

  test('is never taken from another WABA, and upstream is asked once for a flood, again slowly', async () => {
    const { database } = stack;
    const before = stack.asked();
    stack.answer(async () => {
      throw new GraphError({ httpStatus: 401, code: 190, subcode: null, message: 'gone', transient: false });
    });
    const flood = Array.from({ length: 300 }, (_, n) =>
      textsBody({ id: `d${n}`, phoneNumberId: `${NEW_NUMBER}${4 + (n % 2)}` }),
    );
    for (let n = 0; n < flood.length; n += 30) await takeIn(database, ...flood.slice(n, n + 30));
    await eventually('upstream is asked', async () => stack.asked() > before);
    expect(stack.asked() - before).toBeLessThan(5);
    // Of which people are told, until there is another token.
    await eventually('the refused token is noted', async () => (await refusedTokens()).length > 0);
    expect(await refusedTokens()).toEqual([{ waba_id: WABA, token_problem: 'gone' }]);
    stack.answer(async () => [...OWN, listed(`${NEW_NUMBER}4`), listed('800000000000221', 'Stolen')]);
    await setAccessToken({ database, secretBox: testSecretBox, actor: OPERATOR_COMMAND }, WABA, 'EAAG-new');
    await eventually('the look-up is done', tasks, { is: 0 });
    await drainInbox(database);
    expect(await eventIds(/^d/)).toHaveLength(150);
    expect(await refusedTokens()).toEqual([]);
    expect(await listPhoneNumbers(database, OTHER_WABA)).toMatchObject([
      { phoneNumberId: '800000000000221', verifiedName: 'Fixture Bazaar' },
    ]);
    expect(await listUnfollowedWabas(database, 10)).toMatchObject([
      { wabaId: WABA, problem: expect.stringMatching(/800000000000221.*another WABA/) },
    ]);
  });

  test('of a body that waits for a token: with the token comes nothing for the WABA that has the number by then', async () => {
    const { database } = stack;
    const [own, victim] = [`${NEW_NUMBER}6`, `${NEW_NUMBER}7`];
    await setToken(database, WABA, null);
    const forged = textsBody({ id: 'g-own', phoneNumberId: own }, { id: 'g-forged', phoneNumberId: victim });
    await insertBodies(database, [{ body: forged, signedFor: [WABA] }]);
    await drainInbox(database);
    await eventually('it shows', async () => (await listUnfollowedWabas(database, 10))[0]?.problem !== null);
    expect(await states()).toEqual(['waiting']);
    await savePhoneNumber(database, OTHER_WABA, listed(victim));
    stack.answer(async () => [...OWN, listed(own)]);
    await setAccessToken({ database, secretBox: testSecretBox, actor: OPERATOR_COMMAND }, WABA, 'EAAG-new');
    await eventually('the look-up is done', tasks, { is: 0 });
    await drainInbox(database);
    expect(await eventIds(/^g/)).toEqual(['g-own']);
    expect(await states()).toEqual(['quarantined']);
  });

  test('of a WABA that nobody has is quarantined at once', async () => {
    await takeIn(
      stack.database,
      textsBody({ id: 'e0', phoneNumberId: NEW_NUMBER, wabaId: '900000000000909' }),
    );
    expect(await states()).toEqual(['quarantined']);
    expect(await tasks()).toBe(0);
  });
});

const refusedTokens = () =>
  query(stack.database, 'select waba_id, token_problem from wabas where token_refused_at is not null');

describe('numbers, names and quality', () => {
  test.each(['phone_number_quality_update', 'phone_number_name_update', 'account_update'])(
    'follow upstream when it tells %s',
    async (field) => {
      const { database } = stack;
      const name = `Store after ${field}`;
      stack.answer(async () => [{ ...listed(NUMBER, name), qualityRating: 'RED' }]);
      await takeIn(database, fieldBody(field), fieldBody(field, '900000000000909'));
      await eventually('the look-up is done', tasks, { is: 0 });
      const identity = await findAccountIdentity(database, WABA);
      expect(identity?.phoneNumbers).toEqual([{ ...listed(NUMBER, name), qualityRating: 'RED' }]);
      await takeIn(database, textsBody({ id: `f-${field}`, phoneNumberId: SECOND_NUMBER }));
      expect(await eventIds(new RegExp(`^f-${field}`))).toHaveLength(1);
    },
  );

  test('follow upstream daily, by a schedule that is made once', async () => {
    const { database, client, taskQueue } = stack;
    stack.answer(async () => [listed(NUMBER, 'Next day')]);
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
      `select next_start_at between now() and now() + interval '30 minutes' as soon from workflow_tasks`,
    );
    expect(task?.soon).toBe(true);
    await execute(database, 'update workflow_tasks set next_start_at = now()');
    await eventually('the look-up is done', tasks, { is: 0 });
    expect(await listPhoneNumbers(database, WABA)).toEqual([listed(NUMBER, 'Next day')]);
    await schedule.delete();
  });
});
