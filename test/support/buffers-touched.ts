import { type Database, undone } from '../../src/platform/postgres/database.ts';
import { type Binding, prepared } from '../../src/platform/postgres/sql.ts';

type Plan = { 'Shared Hit Blocks': number; 'Shared Read Blocks': number };

/**
 * How many pages the statements of `run` touch with the plans that their connection makes for prepared ones: every dead
 * row on the way counts. What they change is undone; `run` goes on with what they answer.
 */
export async function buffersTouched(
  database: Database,
  run: (explaining: Database) => Promise<unknown>,
): Promise<number> {
  let buffers = 0;
  const raw: Database['raw'] = async (text, bindings) => {
    const { text: statement, values } = prepared(text, bindings);
    const call = values.length === 0 ? 'explained' : `explained(${values.map(literal).join(', ')})`;
    await undone(database, async (trx) => {
      await trx.raw(`prepare explained as ${statement}`);
      // For the first time a connection reads the catalog too, because it plans what functions do.
      await undone(trx, (first) => first.raw(`explain (analyze) execute ${call}`));
      const { rows } = await trx.raw(`explain (analyze, buffers, format json) execute ${call}`);
      const plan: Plan = rows[0]['QUERY PLAN'][0].Plan;
      buffers += plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
      await trx.raw('deallocate explained');
    });
    return await database.raw(text, bindings);
  };
  await run({ ...database, raw });
  return buffers;
}

function literal(value: Binding | undefined): string {
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value)) return `'{${value.join(',')}}'`;
  if (value instanceof Date) return `'${value.toISOString()}'`;
  return typeof value === 'number' ? String(value) : `'${String(value).replaceAll("'", "''")}'`;
}
