import type { Database } from '../../src/database/database.ts';
import { query } from '../../src/database/sql.ts';
import { type Binding, prepared } from '../../src/database/statement.ts';

class Undone extends Error {}

/** The plan of the one statement that `run` sends, as it is carried out; what it changed is undone. */
export async function explained(
  database: Database,
  run: (database: Database) => Promise<unknown>,
): Promise<string[]> {
  const statements: string[] = [];
  const spy: Database = {
    ...database,
    raw: async (text, bindings) => {
      const { text: statement, values } = prepared(text, bindings ?? []);
      statements.push(statement.replace(/\$(\d+)/g, (_, n) => literal(values[Number(n) - 1])));
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
      plan = await query(trx, `explain (analyze, buffers, costs off, summary on) ${statement}`);
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
