import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { type Database, LastStatements } from '../../../../src/platform/postgres/database.ts';
import { type Binding, execute, query } from '../../../../src/platform/postgres/sql.ts';
import { testDatabase } from '../../../support/test-database.ts';

async function withTable() {
  const { database } = await testDatabase(2);
  await database.raw('create table kept (n integer primary key)');
  return database;
}

async function numbers(database: Database): Promise<number[]> {
  return (await query<{ n: number }>(database, 'select n from kept order by n')).map(({ n }) => n);
}

const add = (database: Database, n: number) => execute(database, 'insert into kept values (:n)', { n });

describe('a transaction', () => {
  test('keeps all of its statements or none, and gives its connection back either way', async () => {
    const database = await withTable();
    for (let n = 0; n < 10; n += 1) {
      const failing = database.transaction(async (trx) => {
        await Promise.all([add(trx, 1), add(trx, 2), add(trx, 1)]);
      });
      await expect(failing).rejects.toThrow(/duplicate key/);
    }
    expect(await numbers(database)).toEqual([]);
    await database.transaction((trx) => Promise.all([add(trx, 1), add(trx, 2)]));
    expect(await numbers(database)).toEqual([1, 2]);
  });

  test('runs statements that are given side by side in the order in which they are given', async () => {
    const database = await withTable();
    const seen = await database.transaction(async (trx) => {
      const [, one, , two] = await Promise.all([add(trx, 1), numbers(trx), add(trx, 2), numbers(trx)]);
      return { one, two };
    });
    expect(seen).toEqual({ one: [1], two: [1, 2] });
  });

  test('undoes a savepoint alone', async () => {
    const database = await withTable();
    await database.transaction(async (trx) => {
      await add(trx, 1);
      await expect(trx.transaction((savepoint) => add(savepoint, 1))).rejects.toThrow(/duplicate key/);
      await trx.transaction((savepoint) => add(savepoint, 2));
    });
    expect(await numbers(database)).toEqual([1, 2]);
  });

  test('with its last statements under way is committed when they succeed, and undone when one fails', async () => {
    const database = await withTable();
    const answer = await database.transaction(async (trx) => {
      await add(trx, 1);
      return new LastStatements(Promise.all([add(trx, 2), add(trx, 3)]));
    });
    expect(answer).toEqual([1, 1]);
    expect(await numbers(database)).toEqual([1, 2, 3]);
    const failing = database.transaction(async (trx) => {
      await add(trx, 4);
      return new LastStatements(Promise.all([add(trx, 5), add(trx, 1), add(trx, 6)]));
    });
    await expect(failing).rejects.toThrow(/duplicate key/);
    expect(await numbers(database)).toEqual([1, 2, 3]);
    await database.transaction((trx) => add(trx, 7));
    expect(await numbers(database)).toEqual([1, 2, 3, 7]);
  });

  test('refuses a statement behind its last ones: it would stand outside of the transaction', async () => {
    const database = await withTable();
    const late = database.transaction(async (trx) => {
      const last = add(trx, 1).then(() => add(trx, 2));
      return new LastStatements(last);
    });
    await expect(late).rejects.toThrow(/after the last ones/);
  });

  test('that is being undone takes no further statements, of whatever branch, and its connection stays', async () => {
    const database = await withTable();
    const backend = async (from: Database) => await query(from, 'select pg_backend_pid() as pid');
    const before = await backend(database);
    for (const fail of ['in JavaScript', 'in SQL']) {
      let branch: Promise<unknown> = Promise.resolve();
      const failing = database.transaction(async (trx) => {
        const first = add(trx, 1);
        branch = first
          .then(() => add(trx, 2))
          .then(() => add(trx, 3))
          .then(() => add(trx, 4));
        const failure = fail === 'in SQL' ? query(trx, 'select 1 / :value::integer', { value: 0 }) : first;
        await Promise.all([branch, failure.then(() => Promise.reject(new Error('a slip')))]);
      });
      await expect(failing).rejects.toThrow(fail === 'in SQL' ? /division by zero/ : 'a slip');
      await expect(branch).rejects.toThrow();
      expect(await numbers(database)).toEqual([]);
      expect(await backend(database)).toEqual(before);
    }
  });

  test('that the server ended fails, and the pool goes on', async () => {
    const database = await withTable();
    const killed = database.transaction(async (trx) => {
      await add(trx, 1);
      await database.raw(
        `select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and pid <> pg_backend_pid()`,
      );
      await add(trx, 2);
    });
    await expect(killed).rejects.toThrow();
    expect(await numbers(database)).toEqual([]);
  });
});

/** The driver asks a value for its text. */
const UNSENDABLE = {
  toPostgres() {
    throw new Error('this value cannot be sent');
  },
} as unknown as Binding;

describe('a statement alone', () => {
  test('that fails leaves its connection to the next one', async () => {
    const { database } = await testDatabase(1);
    const pid = async () => await query(database, 'select pg_backend_pid() as pid');
    const before = await pid();
    for (let n = 0; n < 3; n += 1)
      await expect(query(database, 'select 1 / :value::integer', { value: 0 })).rejects.toThrow(
        'division by zero',
      );
    await expect(database.raw('select 1; select 1 / 0')).rejects.toThrow('division by zero');
    await expect(query(database, 'select :unsendable::integer', { unsendable: UNSENDABLE })).rejects.toThrow(
      'cannot be sent',
    );
    expect(await pid()).toEqual(before);
    expect(await query(database, 'select :value::integer as n', { value: 7 })).toEqual([{ n: 7 }]);
  });
});

describe('statements side by side', () => {
  test('with a value that cannot be sent fail from there on, and their transaction is undone', async () => {
    const database = await withTable();
    const addBoth = (trx: Database, n: Binding) =>
      execute(trx, 'insert into kept select unnest(array[cast(:n as integer), 20])', { n });
    for (let n = 0; n < 3; n += 1) {
      const failing = database.transaction(async (trx) => {
        const results = Promise.allSettled([add(trx, 1), addBoth(trx, UNSENDABLE), add(trx, 2)]);
        expect(await results).toMatchObject([
          { status: 'fulfilled', value: 1 },
          { status: 'rejected', reason: { message: 'this value cannot be sent' } },
          { status: 'rejected', reason: { message: 'this value cannot be sent' } },
        ]);
        throw new Error('as expected');
      });
      await expect(failing).rejects.toThrow('as expected');
      const last = database.transaction(
        async (trx) => new LastStatements(Promise.all([add(trx, 1), addBoth(trx, UNSENDABLE)])),
      );
      await expect(last).rejects.toThrow('this value cannot be sent');
      await expect(addBoth(database, UNSENDABLE)).rejects.toThrow('this value cannot be sent');
    }
    expect(await numbers(database)).toEqual([]);
    expect(await database.transaction((trx) => Promise.all([addBoth(trx, 10), add(trx, 1)]))).toEqual([2, 1]);
    expect(await numbers(database)).toEqual([1, 10, 20]);
  });

  test('behind one that failed have errors of their own, whose cause is that one', async () => {
    const database = await withTable();
    const divide = async (trx: Database) => await query(trx, 'select 1 / :value::integer', { value: 0 });
    const read = async (trx: Database) => await numbers(trx);
    const results = database.transaction((trx) => Promise.allSettled([divide(trx), read(trx)]));
    await expect(results).rejects.toThrow(/rolled back/);
    const failing = database.transaction((trx) => Promise.all([divide(trx), read(trx)]));
    const error = await failing.catch((reason: Error) => reason);
    expect(error).toMatchObject({ message: 'division by zero', code: '22012' });
    expect((error as Error).stack).toContain('divide');
    const both: unknown[] = [];
    await database
      .transaction((trx) =>
        Promise.all([divide(trx), read(trx)].map((one) => one.catch((reason: unknown) => both.push(reason)))),
      )
      .catch(() => undefined);
    expect(both[1]).toMatchObject({ message: expect.stringContaining('skipped'), cause: both[0] });
  });

  test('of which one has a row that cannot be read fail that one alone', async () => {
    const database = await withTable();
    pg.types.setTypeParser(pg.types.builtins.MONEY, (text) => {
      throw new Error(`not read: ${text.length} characters`);
    });
    const rows = "select cast(n as money) as amount from generate_series(1, 3) as n where :some <> ''";
    for (let n = 0; n < 3; n += 1) {
      const results = database.transaction((trx) =>
        Promise.allSettled([add(trx, n), query(trx, rows, { some: 'all' }), numbers(trx)]),
      );
      expect(await results).toMatchObject([
        { status: 'fulfilled', value: 1 },
        { status: 'rejected', reason: { message: 'not read: 5 characters' } },
        { status: 'fulfilled', value: Array.from({ length: n + 1 }, (_, index) => index) },
      ]);
    }
  });

  test('tell what they did', async () => {
    const database = await withTable();
    const results = database.transaction((trx) =>
      Promise.all([
        trx.raw('create table other (n integer)', {}),
        trx.raw('insert into kept values (:value), (:value2)', { value: 1, value2: 2 }),
        trx.raw('select n, n as twice, null as nothing from kept where n > :n order by n', { n: 1 }),
      ]),
    );
    expect(await results).toMatchObject([
      { command: 'CREATE', rowCount: null, rows: [] },
      { command: 'INSERT', rowCount: 2, rows: [] },
      { command: 'SELECT', rowCount: 1, rows: [{ n: 2, twice: 2, nothing: null }] },
    ]);
  });
});
