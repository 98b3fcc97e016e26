import type { Database } from '../../src/platform/postgres/database.ts';
import { type Binding, prepared } from '../../src/platform/postgres/sql.ts';

class Undone extends Error {}

/**
 * The plan of the one statement that `run` sends, as it is carried out; what it changed is undone. The statement is
 * prepared, because the plan of a statement with values in it is another one.
 */
export async function explained(
  database: Database,
  run: (database: Database) => Promise<unknown>,
): Promise<string[]> {
  const statements: { text: string; values: Binding[] }[] = [];
  const spy: Database = {
    ...database,
    raw: async (text, bindings) => {
      statements.push(prepared(text, bindings));
      return await database.raw('select 1 where false');
    },
  };
  await run(spy);
  const [statement, ...more] = statements;
  if (statement === undefined || more.length > 0)
    throw new Error(`${statements.length} statements were sent`);
  let plan: { 'QUERY PLAN': string }[] = [];
  try {
    await database.transaction(async (trx) => {
      const { text, values } = statement;
      await trx.raw(`prepare explained as ${text}`);
      const call = values.length === 0 ? 'explained' : `explained(${values.map(literal).join(', ')})`;
      plan = (await trx.raw(`explain (analyze, buffers, costs off, summary on) execute ${call}`)).rows;
      await trx.raw('deallocate explained');
      throw new Undone();
    });
  } catch (error) {
    if (!(error instanceof Undone)) throw error;
  }
  return plan.map((row) => row['QUERY PLAN']);
}

function literal(value: Binding | undefined): string {
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value)) return `'{${value.join(',')}}'`;
  return typeof value === 'number' ? String(value) : `'${String(value).replaceAll("'", "''")}'`;
}
