/**
 * Fills a queue in several shapes, the largest with a million waiting deliveries, and prints for each the plans of the
 * claim and the times of the statements that deliveries go through. Run: node bench/query-plans.ts [--plans]
 */

import { startTestInfrastructure } from '../dev/embedded/test-infrastructure.ts';
import { findDueEndpoints } from '../src/engine/queue/claim.ts';
import { type Database, openDatabase } from '../src/platform/postgres/database.ts';
import { migrate } from '../src/platform/postgres/migrate.ts';
import { execute } from '../src/platform/postgres/sql.ts';
import { explained } from './plans/explained-statement.ts';
import { fillQueue, type QueueShape } from './plans/fill-queue.ts';
import { claimOf, PAGE, sharesOf, type Timing, timeStatements } from './plans/time-statements.ts';
import { ageDatabase } from './stack/aged-database.ts';

const SHAPES: readonly QueueShape[] = [
  { name: '10,000 rows, half behind blocked heads', rows: 10_000, kind: 'blocked heads' },
  { name: '1,000,000 rows, half behind blocked heads', rows: 1_000_000, kind: 'blocked heads' },
  { name: '1,000,000 rows at one paused endpoint', rows: 1_000_000, kind: 'one paused endpoint' },
];

const infrastructure = await startTestInfrastructure(() => {});
const database = openDatabase({
  url: infrastructure.postgresUrl,
  poolMax: 4,
  applicationName: 'bench',
  // As the worker connects.
  fixedPlans: true,
});
try {
  await migrate(database);
  await ageDatabase(database);
  await execute(database, `insert into tenants (business_name) values ('bench')`);
  await execute(database, `insert into wabas (waba_id, tenant_id) values ('1', 1)`);
  for (const shape of SHAPES) {
    await fillQueue(database, shape);
    process.stdout.write(`\n## ${shape.name}\n\n`);
    await printPlan(database);
    print(await timeStatements(database));
  }
} finally {
  await database.destroy();
  await infrastructure.stop();
}

/** The second of two: the first one reads what is not in memory yet. */
async function printPlan(of: Database): Promise<void> {
  const shares = await sharesOf(of);
  const statements: [string, (database: Database) => Promise<unknown>][] = [
    ['walk over endpoints', (explaining) => findDueEndpoints(explaining, PAGE)],
    ['claim of a loop', (explaining) => claimOf(explaining, shares)],
  ];
  for (const [name, run] of statements) {
    await explained(of, run);
    const plan = await explained(of, run);
    const shown = process.argv.includes('--plans')
      ? plan
      : plan.filter((line) => /Execution Time/.test(line));
    process.stdout.write(`${name}: ${shown.join('\n')}\n\n`);
  }
}

function print(timings: readonly Timing[]): void {
  process.stdout.write(
    `${'statement'.padEnd(44)}${'rows'.padStart(8)}${'p50 ms'.padStart(10)}${'p95 ms'.padStart(10)}\n`,
  );
  for (const { statement, rows, p50Ms, p95Ms } of timings) {
    const figures = [String(rows).padStart(8), p50Ms.toFixed(2).padStart(10), p95Ms.toFixed(2).padStart(10)];
    process.stdout.write(`${statement.padEnd(44)}${figures.join('')}\n`);
  }
}
