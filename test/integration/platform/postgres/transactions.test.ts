import { describe, expect, test } from 'vitest';
import { type Database, LastStatements } from '../../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { testDatabase } from '../../../support/test-database.ts';

async function withTable() {
  const { database } = await testDatabase(2);
  await database.raw('create table kept (n integer primary key)');
  return database;
}

async function numbers(database: Database): Promise<number[]> {
  return (await query<{ n: number }>(database, 'select n from kept order by n')).map(({ n }) => n);
}

const add = (database: Database, n: number) => execute(database, 'insert into kept values (?)', [n]);

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
