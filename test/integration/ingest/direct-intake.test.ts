import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { SignedBody } from '../../../src/engine/inbox/bodies.ts';
import { lockIntake } from '../../../src/engine/inbox/intake-lock.ts';
import { shardOf } from '../../../src/engine/inbox/shards.ts';
import { setOptOutWords } from '../../../src/features/accounts/opt-out-words.ts';
import { removeNumber } from '../../../src/features/accounts/remove-number.ts';
import { makeDirectIntake } from '../../../src/ingest/intake/direct-intake.ts';
import { startIntake } from '../../../src/ingest/intake/intake-loop.ts';
import type { IntakeTools } from '../../../src/ingest/intake/intake-tools.ts';
import { insertBodies, type KeepAtOnce } from '../../../src/ingest/intake/store-bodies.ts';
import { OPERATOR_COMMAND } from '../../../src/platform/audit/audit.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { ACCOUNT, bodyOf, messageStatus, textMessage } from '../../support/load/upstream-bodies.ts';
import {
  drainInbox,
  ENDLESS_PATIENCE,
  intakeTools,
  storedEvents,
  takeInBatch,
} from '../../support/take-in.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testWorkerDatabase } from '../../support/test-database.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';
import { eventually } from '../../support/webhook-receiver.ts';

const ALWAYS_IDLE = { isIdle: () => true };

let database: Database;
let tools: IntakeTools;
let direct: KeepAtOnce;

beforeEach(async () => {
  ({ database } = await testWorkerDatabase());
  await seedFixtureAccounts(database);
  await addEndpoint(database, ACCOUNT.wabaId, 'https://one.example/hook');
  tools = intakeTools(database);
  await takeInBatch(tools);
  direct = makeDirectIntake(tools, ALWAYS_IDLE, ENDLESS_PATIENCE);
});

const inTurn = () => undefined;

const signedForAll = (body: Buffer): SignedBody => ({ body, signedFor: null });

async function keep(bodies: readonly Buffer[]): Promise<boolean> {
  const { usual, isKept } = direct(bodies.map(signedForAll), inTurn);
  return usual.length === 0 && (await isKept);
}

const message = (id: string) => bodyOf(ACCOUNT, [textMessage(id, 'hello')]);

async function states(): Promise<string[]> {
  const rows = await query<{ state: string }>(database, 'select state from inbox order by id');
  return rows.map(({ state }) => state);
}

async function eventIds(): Promise<string[]> {
  return (await storedEvents(database)).map(({ eventId }) => eventId);
}

/** What an ingress does. */
async function acknowledge(body: Buffer): Promise<'at once' | 'later'> {
  if (await keep([body])) return 'at once';
  await insertBodies(database, [body]);
  return 'later';
}

test('bodies are taken in in the transaction that keeps them, numbers known or not', async () => {
  for (const n of [1, 2, 3]) expect(await keep([message(`wamid.${n}`), message(`wamid.${n}b`)])).toBe(true);
  expect(await eventIds()).toEqual(['1', '1b', '2', '2b', '3', '3b'].map((n) => `wamid.${n}`));
  expect(new Set(await states())).toEqual(new Set(['done']));
  expect(await query(database, `select 1 from delivery_queue where state = 'due'`)).toHaveLength(6);
});

test('bodies of a shard that is being taken in are kept the usual way, the others at once', async () => {
  const busy = shardOf(ACCOUNT.wabaId);
  direct = makeDirectIntake(tools, { isIdle: (shard) => shard !== busy }, ENDLESS_PATIENCE);
  const bodies = [message('wamid.1'), bodyOf(other, [textMessage('wamid.2', 'hello')])].map(signedForAll);
  const { usual, tried, isKept } = direct(bodies, inTurn);
  expect([usual, tried]).toEqual([[bodies[0]], [bodies[1]]]);
  expect(await isKept).toBe(true);
  expect(await eventIds()).toEqual(['wamid.2']);
});

test('a word by which a customer opts out counts from the moment that it is set, and holds back no other message', async () => {
  expect(await keep([message('wamid.1')])).toBe(true);
  const word = (id: string) => bodyOf(ACCOUNT, [textMessage(id, 'Stop')]);
  expect(await keep([word('wamid.2')])).toBe(true);
  const setting = { database, actor: OPERATOR_COMMAND };
  await setOptOutWords(setting, ACCOUNT.wabaId, { optOutWords: ['STOP'] });
  const noted = () => query(database, 'select source from opt_outs where is_stop');
  expect(await noted()).toEqual([]);
  expect(await acknowledge(word('wamid.3'))).toBe('later');
  await drainInbox(database, tools);
  expect(await noted()).toEqual([{ source: 'keyword' }]);
  expect(await keep([message('wamid.4')])).toBe(true);
  expect(await acknowledge(word('wamid.5'))).toBe('later');
  await drainInbox(database, tools);
  const messages = (await storedEvents(database)).filter(({ type }) => type === 'message');
  expect(messages.map(({ eventId }) => eventId)).toEqual([1, 2, 3, 4, 5].map((n) => `wamid.${n}`));
});

const other = { ...ACCOUNT, wabaId: '900000000000202', phoneNumberId: '800000000000221' };

/** Runs at the commit of a transaction that stored this message. */
async function atCommitOf(upstreamId: string, statement: string): Promise<void> {
  await database.raw(
    `create function at_commit() returns trigger language plpgsql as $$ begin ${statement}; return null; end $$;
     create constraint trigger at_commit after insert on messages deferrable initially deferred
       for each row when (new.upstream_id = '${upstreamId}') execute function at_commit()`,
  );
}

/** Gives each batch when the one before has sent its statements, as an ingress does; whether each was kept. */
async function keepOneAfterTheOther(batches: readonly Buffer[][]): Promise<boolean[]> {
  const kept: Promise<boolean>[] = [];
  for (const bodies of batches) {
    const sent = Promise.withResolvers<void>();
    const { isKept } = direct(bodies.map(signedForAll), sent.resolve);
    kept.push(isKept);
    await Promise.race([sent.promise, isKept]);
  }
  return await Promise.all(kept);
}

describe('bodies that come while the ones before them are being committed', () => {
  beforeEach(async () => {
    // Whose number it is, is remembered then.
    await keep([message('wamid.0')]);
  });

  test('are taken in behind them', async () => {
    await atCommitOf('wamid.1', 'perform pg_sleep(0.5)');
    const sent = Promise.withResolvers<void>();
    const first = direct([signedForAll(message('wamid.1'))], sent.resolve);
    await sent.promise;
    const second = direct([signedForAll(message('wamid.2'))], inTurn);
    expect(await Promise.all([first.isKept, second.isKept])).toEqual([true, true]);
    expect(await eventIds()).toEqual(['wamid.0', 'wamid.1', 'wamid.2']);
  });

  test('are sent behind those of one statement, so none of them finds its shard taken', async () => {
    const ids = Array.from({ length: 60 }, (_, n) => `wamid.${n + 1}`);
    expect(new Set(await keepOneAfterTheOther(ids.map((id) => [message(id)])))).toEqual(new Set([true]));
    expect(await eventIds()).toEqual(['wamid.0', ...ids]);
  });

  test('overtake none that are kept the usual way, until those are stored', async () => {
    const stored = Promise.withResolvers<void>();
    const odd = String(message('wamid.odd')).replace('"messages"', '"unknown_field"');
    const notPlain = signedForAll(Buffer.from(odd));
    const first = direct([notPlain], inTurn, stored.promise);
    expect(first.usual).toEqual([notPlain]);
    expect(await keep([message('wamid.1')])).toBe(false);
    stored.resolve();
    await stored.promise;
    await eventually('the shard is free', async () => await keep([message('wamid.1')]));
    expect(await eventIds()).toEqual(['wamid.0', 'wamid.1']);
  });

  test('are kept the usual way behind those that could not be committed, until those are stored', async () => {
    await atCommitOf('wamid.1', "raise exception 'no commit'");
    const stored = Promise.withResolvers<void>();
    const first = direct([signedForAll(message('wamid.1'))], inTurn, stored.promise);
    expect(await first.isKept).toBe(false);
    expect(await keep([message('wamid.2')])).toBe(false);
    stored.resolve();
    await stored.promise;
    await eventually('the shard is free', async () => await keep([message('wamid.2')]));
    expect(await eventIds()).toEqual(['wamid.0', 'wamid.2']);
  });

  test('are kept the usual way behind them when those cannot be committed', async () => {
    await atCommitOf('wamid.1', "perform pg_sleep(0.2); raise exception 'no commit'");
    expect(await keepOneAfterTheOther([[message('wamid.1')], [message('wamid.2')]])).toEqual([false, false]);
    expect(await eventIds()).toEqual(['wamid.0']);
  });

  test('of another shard wait for nothing', async () => {
    await atCommitOf('wamid.1', 'perform pg_sleep(2)');
    const sent = Promise.withResolvers<void>();
    const first = direct([signedForAll(message('wamid.1'))], sent.resolve);
    await sent.promise;
    const second = direct([signedForAll(bodyOf(other, [textMessage('wamid.2', 'hello')]))], inTurn);
    const firstOf = await Promise.race([first.isKept.then(() => 1), second.isKept.then(() => 2)]);
    expect(firstOf).toBe(2);
    expect(await Promise.all([first.isKept, second.isKept])).toEqual([true, true]);
  });
});

test('a body that is not plain leaves out those behind it in its shard, and no others', async () => {
  const odd = Buffer.from(String(message('wamid.odd')).replace('"messages"', '"unknown_field"'));
  const bodies = [
    message('wamid.1'),
    odd,
    message('wamid.2'),
    bodyOf(other, [textMessage('wamid.3', 'hello')]),
  ];
  const given = bodies.map(signedForAll);
  const { usual, tried, isKept } = direct(given, inTurn);
  expect([tried, usual]).toEqual([
    [given[0], given[3]],
    [given[1], given[2]],
  ]);
  expect(await isKept).toBe(true);
});

test('a body with too many deliveries is kept the usual way, and takes no others with it the next time', async () => {
  for (let n = 0; n < 20; n += 1) await addEndpoint(database, ACCOUNT.wabaId, `https://e${n}.example/hook`);
  const dear = (round: number) =>
    bodyOf(
      ACCOUNT,
      Array.from({ length: 30 }, (_, n) => textMessage(`wamid.${round}-${n}`, 'hello')),
    );
  expect(await keep([dear(1)])).toBe(false);
  const given = [bodyOf(other, [textMessage('wamid.2', 'hello')]), dear(2)].map(signedForAll);
  const { usual, tried, isKept } = direct(given, inTurn);
  expect([tried, usual]).toEqual([[given[0]], [given[1]]]);
  expect(await isKept).toBe(true);
  expect(await eventIds()).toEqual(['wamid.2']);
});

test('what upstream sends again counts once, whichever way it comes', async () => {
  expect(await acknowledge(message('wamid.1'))).toBe('at once');
  expect(await acknowledge(message('wamid.1'))).toBe('later');
  await insertBodies(database, [message('wamid.1')]);
  await drainInbox(database, tools);
  expect(await eventIds()).toEqual(['wamid.1']);
});

describe('bodies are left to be kept the usual way, and nothing of them stays', () => {
  const isLeft = async (body: Buffer) => {
    const before = await query(database, 'select count(*) from inbox');
    expect(await keep([body])).toBe(false);
    expect(await query(database, 'select count(*) from inbox')).toEqual(before);
    expect(await query(database, 'select 1 from dedup_keys')).toEqual([]);
  };

  test('while an older one of their shard waits', async () => {
    // Without a notification: it is there, and this process does not know.
    await database.raw(
      `insert into inbox (waba_id, shard, body) values ('${ACCOUNT.wabaId}', ${shardOf(ACCOUNT.wabaId)}, 'x')`,
    );
    await isLeft(message('wamid.1'));
  });

  test('while another takes in their shard', async () => {
    await database.transaction(async (trx) => {
      await execute(trx, `select pg_advisory_xact_lock(7340001, ${shardOf(ACCOUNT.wabaId)})`);
      await isLeft(message('wamid.1'));
    });
  });

  test('when they cannot be stored', async () => {
    await database.raw(
      `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'poison'; end $$;
       create trigger refuse before insert on messages for each row execute function refuse()`,
    );
    await isLeft(message('wamid.1'));
  });

  test.each(['odd_unknown_phone_number', 'odd_not_json', 'in_image_caption_url', 'in_order'])(
    'when they are not plain: %s',
    async (name) => {
      await isLeft(name === 'odd_not_json' ? Buffer.from('{') : fixtureBody(name));
    },
  );

  test('when their app secret may not speak for the WABA of their number, remembered or not', async () => {
    const keepSigned = async (id: string, signedFor: string[]) =>
      await direct([{ body: message(id), signedFor }], inTurn).isKept;
    expect(await keepSigned('wamid.foreign', ['900000000000202'])).toBe(false);
    expect(await keepSigned('wamid.own', ['900000000000202', ACCOUNT.wabaId])).toBe(true);
    expect(await keepSigned('wamid.foreign', ['900000000000202'])).toBe(false);
    expect(await eventIds()).toEqual(['wamid.own']);
  });

  test('when a number was removed that this process knew', async () => {
    expect(await keep([message('wamid.1')])).toBe(true);
    await query(database, 'delete from dedup_keys');
    await removeNumber({ database, actor: OPERATOR_COMMAND }, ACCOUNT.wabaId, ACCOUNT.phoneNumberId);
    await isLeft(message('wamid.2'));
  });
});

test('a change of owners sends one body of its shard the usual way, in a process that takes no turns there', async () => {
  tools = intakeTools(database);
  direct = makeDirectIntake(tools, ALWAYS_IDLE, ENDLESS_PATIENCE);
  expect(await keep([message('wamid.0')])).toBe(true);
  for (const round of [1, 2]) {
    await database.transaction((trx) => lockIntake(trx, shardOf(ACCOUNT.wabaId)));
    expect(await keep([message(`wamid.${round}`)])).toBe(false);
    expect(await keep([message(`wamid.${round}`)])).toBe(true);
    expect(await keep([message(`wamid.${round}b`)])).toBe(true);
  }
});

test('a shard that another works on is left to it for a moment, and tried again then', async () => {
  direct = makeDirectIntake(tools, ALWAYS_IDLE, { ...ENDLESS_PATIENCE, longestRestMs: 1_000 });
  await database.transaction(async (trx) => {
    await execute(trx, `select pg_advisory_xact_lock(7340001, ${shardOf(ACCOUNT.wabaId)})`);
    const rests = () => direct([signedForAll(message('wamid.1'))], inTurn).tried.length === 0;
    await eventually('it rests after an attempt in vain', async () => {
      expect(await keep([message('wamid.1')])).toBe(false);
      return rests();
    });
  });
  await eventually('it is tried again', async () => await keep([message('wamid.1')]));
  expect(await eventIds()).toEqual(['wamid.1']);
});

test('a disk that is slow for a moment has nothing written twice', async () => {
  expect(await keep([message('wamid.1')])).toBe(true);
  await atCommitOf('wamid.2', 'perform pg_sleep(0.35)');
  direct = makeDirectIntake(tools, ALWAYS_IDLE);
  expect(await acknowledge(message('wamid.2'))).toBe('at once');
  expect(await states()).toEqual(['done', 'done']);
});

describe('an attempt that takes too long', () => {
  const stalled = async () => {
    await keep([message('wamid.1')]);
    await atCommitOf('wamid.2', 'perform pg_sleep(2.5)');
    direct = makeDirectIntake(tools, ALWAYS_IDLE, { wholeMs: 100, locksMs: 100, longestRestMs: 0 });
    expect(await keep([message('wamid.2')])).toBe(false);
  };

  test('sends no body of another shard the usual way', async () => {
    await stalled();
    // What takes long here may be the machine.
    const theirs = (n: number) => bodyOf(other, [textMessage(`wamid.other-${n}`, 'hello')]);
    const { tried } = direct([signedForAll(theirs(1))], inTurn);
    expect(tried).toHaveLength(1);
    await eventually('it is stored', async () => (await eventIds()).includes('wamid.other-1'));
  });

  test('is the only one of its shard until it has ended, however long that takes', async () => {
    await stalled();
    const isTried = () => direct([signedForAll(message('wamid.3'))], inTurn).tried.length > 0;
    const isStored = async () => (await eventIds()).includes('wamid.2');
    while (!(await isStored())) {
      const wasTried = isTried();
      if (!(await isStored())) expect(wasTried).toBe(false);
    }
    await eventually('the shard is tried again', isTried);
  });
});

test('a lock that is held keeps nobody waiting for the answer, and what was tried counts once', async () => {
  expect(await keep([message('wamid.1')])).toBe(true);
  let isReleased = false;
  const holding = database.transaction(async (trx) => {
    await execute(trx, 'select 1 from conversations for update');
    while (!isReleased) await execute(trx, 'select pg_sleep(0.1)');
  });
  direct = makeDirectIntake(tools, ALWAYS_IDLE);
  const startMs = performance.now();
  expect(await acknowledge(message('wamid.2'))).toBe('later');
  // The usual patience with a lock is 10 s.
  expect(performance.now() - startMs).toBeLessThan(8_000);
  isReleased = true;
  await holding;
  await drainInbox(database, tools);
  expect(await eventIds()).toEqual(['wamid.1', 'wamid.2']);
});

test('events keep the order of the answers while another ingress keeps bodies the usual way', async () => {
  const intake = startIntake(tools);
  onTestFinished(() => intake.stop());
  direct = makeDirectIntake(tools, intake, ENDLESS_PATIENCE);
  const ways = new Map<string, number>();
  const steps = ['sent', 'delivered', 'read'];
  const ladder = async (id: string) => {
    for (const [n, status] of steps.entries()) {
      const body = bodyOf(ACCOUNT, [messageStatus(id, status)]);
      if (n === 1) await insertBodies(database, [body]);
      else {
        const way = await acknowledge(body);
        ways.set(way, (ways.get(way) ?? 0) + 1);
      }
    }
  };
  let rounds = 0;
  // After an attempt in vain a shard rests for ten times as long, which is long on a busy machine.
  for (; rounds < 15 || !ways.has('at once'); rounds += 1) {
    await eventually('the loop rests', async () => intake.isIdle(shardOf(ACCOUNT.wabaId)));
    await Promise.all([0, 1, 2].map((n) => ladder(`wamid.${rounds}-${n}`)));
    intake.wake();
    await eventually('all is taken in', async () => !(await states()).includes('new'));
  }
  const rows = await query<{ statuses: string }>(
    database,
    `select string_agg(convert_from(body, 'UTF8')::jsonb -> 'data' -> 'status' ->> 'status', ',' order by sequence)
            as statuses from events group by event_id`,
  );
  expect(rows).toHaveLength(3 * rounds);
  expect(new Set(rows.map(({ statuses }) => statuses))).toEqual(new Set(['sent,delivered,read']));
});
