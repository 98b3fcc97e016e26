import { setTimeout as sleep } from 'node:timers/promises';
import { query } from '../../../platform/postgres/sql.ts';
import { checkObjectStore } from '../../health/object-store-check.ts';
import type { PortalContext } from '../portal-app.ts';

/** One of the programs that the service stands on, as it answers now. */
export type Part = { name: string; purpose: string; ok: boolean; answerMs: number };

const ANSWER_WITHIN_MS = 2_000;

/** Asks every part at the same time; one that does not answer in time counts as away. */
export async function checkParts({
  database,
  objectStore,
  temporal,
  config,
}: PortalContext): Promise<Part[]> {
  const { namespace } = config.temporal;
  return await Promise.all([
    check('PostgreSQL', 'stores everything', () => query(database, 'select 1')),
    check('Temporal', 'runs workflows', () =>
      temporal.use(ANSWER_WITHIN_MS, (client) => client.workflowService.describeNamespace({ namespace })),
    ),
    check('Object store', 'stores media', () => checkObjectStore(objectStore)),
  ]);
}

async function check(name: string, purpose: string, ask: () => Promise<unknown>): Promise<Part> {
  const startMs = performance.now();
  const asked = ask().then(
    () => true,
    () => false,
  );
  const ok = await Promise.race([asked, sleep(ANSWER_WITHIN_MS, false, { ref: false })]);
  return { name, purpose, ok, answerMs: performance.now() - startMs };
}
