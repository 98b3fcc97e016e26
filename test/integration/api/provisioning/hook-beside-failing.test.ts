import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { renameTenant, saveWaba } from '../../../../src/features/accounts/accounts.ts';
import { putHook } from '../../../../src/ops/feed/hooks.ts';
import { OPERATOR_COMMAND } from '../../../../src/platform/audit/audit.ts';
import { makeAddressGuard } from '../../../../src/platform/http/outbound-url.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { countingServer, readCounts } from '../../../support/counting-server.ts';
import { addEndpoints, queueEach } from '../../../support/many-endpoints.ts';
import { freshTenant, seedFixtureAccounts, testSecretBox } from '../../../support/test-accounts.ts';
import { testSettings } from '../../../support/test-settings.ts';
import { eventually, startReceiver } from '../../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../../support/worker-process.ts';

const NOISY = '1';
const WABAS = 100;
const ENDPOINTS_PER_WABA = 100;
/** So many alerts of a kind are open at once. */
const ALERTS = 5_000;
/** What is left of a turn of the tenant with many events, a whole one, and what comes while that is read. */
const MOST_BEFORE = 25;
/** Pages of 8 KiB for a page of 100 events: an entry and its place in the order are at most four each. */
const MOST_PAGES = 1_500;
/** An entry is at its place in the order within a millisecond, and the others wait for as long as a commit takes. */
const MOST_IN_A_COMMIT = 250;
/** Thousands of attempts: it is their order that counts, on any machine. */
const PATIENT_MS = 600_000;

/** 10,000 endpoints of one tenant that fail for an hour, each with something due. */
async function failEverywhere(database: Database): Promise<void> {
  for (let n = 0; n < WABAS; n += 1) {
    const wabaId = String(960000000000000 + n);
    await saveWaba(database, NOISY, { wabaId, accessTokenSealed: null });
    const urls = Array.from({ length: ENDPOINTS_PER_WABA }, (_, at) => `http://127.0.0.1:9/${n}/${at}`);
    const ids = await addEndpoints(database, wabaId, { urls, ratePerSecond: null });
    await queueEach(database, wabaId, ids, (at) => `lane ${at}`);
  }
  await database.raw(
    `update endpoint_health set mode = 'probing', mode_reason = 'it is down', failing_since = now() - interval '1 hour',
            failing_notified = true, next_probe_at = now() + random() * interval '30 seconds'`,
  );
  await database.raw('vacuum analyze');
}

type Sent = { sequence: number; tenant: { userId: number } };

test('a hook beside 10,000 endpoints of one tenant that fail has the events of another one in their turn, and all in the end', {
  timeout: 4 * PATIENT_MS,
}, async () => {
  const { database, url } = await countingServer();
  await seedFixtureAccounts(database);
  const other = await freshTenant(database);
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  await failEverywhere(database);
  const allowCidrs = ['127.0.0.0/8'];
  const urlRules = { allowHttp: true, guard: makeAddressGuard({ allowCidrs }), resolve: async () => [] };
  const tools = { database, secretBox: testSecretBox, actor: OPERATOR_COMMAND, urlRules };
  await putHook(tools, 'crm', { url: `${receiver.url}/hook` });
  await query(database, 'select pg_stat_statements_reset()');
  const worker = startWorkerProcess(testSettings(url, { HELIOGRAPH_WEBHOOK_TIMEOUT_MS: '2000' }));
  onTestFinished(() => worker.stop());

  const sent = (): Sent[] => receiver.received.map(({ body }) => JSON.parse(body));
  const of = (userId: string, events: Sent[]) =>
    events.filter(({ tenant }) => tenant.userId === Number(userId));
  await eventually('its alerts are in the feed', () => of(NOISY, sent()).length > 0, PATIENT_MS);
  const passed: { before: number; tookMs: number }[] = [];
  for (let n = 0; n < 10; n += 1) {
    const had = of(other.tenantId, sent()).length;
    const noisy = of(NOISY, sent()).length;
    const startMs = performance.now();
    await renameTenant(tools, other.tenantId, `Acme ${n}`);
    await eventually('the other has its event', () => of(other.tenantId, sent()).length > had, PATIENT_MS);
    passed.push({
      before: of(NOISY, sent()).length - noisy,
      tookMs: Math.round(performance.now() - startMs),
    });
    await sleep(50);
  }
  if (process.env.HELIOGRAPH_TEST_FIGURES !== undefined) process.stderr.write(`${JSON.stringify(passed)}\n`);
  // There was something to be behind all the time.
  expect(of(NOISY, sent()).length).toBeLessThan(ALERTS);
  expect(Math.max(...passed.map(({ before }) => before))).toBeLessThan(MOST_BEFORE);
  const middle = passed.map(({ tookMs }) => tookMs).toSorted((a, b) => a - b)[5];
  expect(middle).toBeLessThan(5_000);

  const sequences = () => of(NOISY, sent()).map(({ sequence }) => sequence);
  await eventually('all have come', () => new Set(sequences()).size, { is: ALERTS, withinMs: PATIENT_MS });
  // A lease that ends on a machine that stands still has the event under way sent again, and no other.
  expect(sequences()).toEqual(sequences().toSorted((a, b) => a - b));
  expect(sequences().length).toBeLessThan(ALERTS + 10);
  const counts = await readCounts(database);
  const ofHooks = counts.filter(({ text }) => /update operations_hooks|audit_chain/.test(text));
  expect(ofHooks.length).toBeGreaterThan(5);
  expect(ofHooks.filter(({ pages }) => pages > MOST_PAGES)).toEqual([]);
  const commits = await query<{ n: number }>(
    database,
    `select count(*)::integer as n from audit_log where action = 'alert.opened' group by xmin order by n desc limit 1`,
  );
  expect(commits[0]?.n).toBeLessThanOrEqual(MOST_IN_A_COMMIT);
});
