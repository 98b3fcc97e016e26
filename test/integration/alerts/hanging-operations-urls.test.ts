import { expect, onTestFinished, test } from 'vitest';
import { newWebhookSecret } from '../../../src/engine/endpoint/webhook-signature.ts';
import { renameTenant, saveWaba } from '../../../src/features/accounts/accounts.ts';
import { claimNotices } from '../../../src/ops/alerts/alert-notices.ts';
import { followConditions } from '../../../src/ops/alerts/alerts.ts';
import { startHookSender } from '../../../src/ops/alerts/operations-sender.ts';
import { OPERATIONS_SECRET } from '../../../src/ops/alerts/operations-url.ts';
import { startNotices } from '../../../src/ops/alerts/send-notices.ts';
import { putHook } from '../../../src/ops/feed/hooks.ts';
import { OPERATOR_COMMAND } from '../../../src/platform/audit/audit.ts';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, queryValue } from '../../../src/platform/postgres/sql.ts';
import { makeHttpSender } from '../../../src/platform/sender/http-sender.ts';
import { notingStatements } from '../../support/noted-statements.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { freshTenant, testSecretBox } from '../../support/test-accounts.ts';
import { testDatabase } from '../../support/test-database.ts';
import { answer, eventually, startReceiver } from '../../support/webhook-receiver.ts';

/** Alerts of a WABA that may be under way at once. */
const AT_ONCE = 8;
const LONGER_THAN_THE_TEST_MS = 3_600_000;

/** WABAs of one tenant, each with its operations URL below this one. */
async function addWabas(database: Database, tenantId: string, count: number, url: string): Promise<string[]> {
  const wabaIds = Array.from({ length: count }, (_, n) => String(970000000000000 + n));
  const secret = newWebhookSecret();
  for (const wabaId of wabaIds) await saveWaba(database, tenantId, { wabaId, accessTokenSealed: null });
  await execute(
    database,
    `update wabas w set operations_url = :url || '/' || waba_id, operations_secret_sealed = sealed
       from unnest(cast(:wabaIds as text[]), cast(:sealed as text[])) as s (id, sealed) where w.waba_id = s.id`,
    {
      url,
      wabaIds,
      sealed: wabaIds.map((id) => testSecretBox.seal(secret, OPERATIONS_SECRET.place(id))),
    },
  );
  return wabaIds;
}

async function addNotices(database: Database, wabaIds: readonly string[], each: number): Promise<void> {
  await execute(
    database,
    `insert into alert_notices (id, waba_id, alert, body)
     select gen_random_uuid(), waba_id, 'account.restricted', '{}'
       from unnest(cast(:wabaIds as text[])) as waba_id, generate_series(1, cast(:each as integer))`,
    { wabaIds, each },
  );
}

function sendingFor(database: Database) {
  const guard = makeAddressGuard({ allowCidrs: ['127.0.0.0/8'] });
  const timeoutMs = LONGER_THAN_THE_TEST_MS;
  const sender = makeHttpSender({
    guard,
    allowHttp: true,
    connectTimeoutMs: timeoutMs,
    totalTimeoutMs: timeoutMs,
  });
  onTestFinished(() => sender.close());
  return { database, sender, secretBox: testSecretBox, timeoutMs, logger: silentLogger };
}

/** Answers nothing until `answerAll`. */
async function hangingReceiver() {
  const held: (() => void)[] = [];
  const receiver = await startReceiver(
    (webhook, response) =>
      new Promise<number | null>((resolve) => {
        held.push(() => resolve(answer(503)(webhook, response) as number));
      }),
  );
  const answerAll = () => {
    for (const one of held.splice(0)) one();
  };
  return { ...receiver, answerAll };
}

test('events of a hook wait for none of thousands of alerts at operations URLs that hang, nor for their ends', async () => {
  const WABAS = 60;
  const EACH = 34;
  // Fewer connections than requests that hang, by far.
  const { database } = await testDatabase(2);
  const [noisy, other] = [await freshTenant(database), await freshTenant(database)];
  const hanging = await hangingReceiver();
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  await addNotices(database, await addWabas(database, noisy.tenantId, WABAS, hanging.url), EACH);
  const urlRules = {
    allowHttp: true,
    guard: makeAddressGuard({ allowCidrs: ['127.0.0.0/8'] }),
    resolve: async () => [],
  };
  const tools = { database, secretBox: testSecretBox, actor: OPERATOR_COMMAND, urlRules };
  await putHook(tools, 'crm', { url: `${receiver.url}/hook`, types: ['tenant.*'] });
  const noted: string[] = [];
  const loop = startHookSender({
    ...sendingFor(notingStatements<Database>(database, noted)),
    alertScheduleMs: Array(10).fill(1_000),
  });
  onTestFinished(async () => {
    // What hangs would hold the loop up.
    await hanging.close();
    await loop.stop();
  });
  /** But for looks at what is due, of which a slow machine makes more. */
  const ofNotices = () =>
    noted.filter((text) => /alert_notices|operations_url/.test(text) && !text.includes('skip locked'));
  const rename = async (name: string) => {
    noted.length = 0;
    const had = receiver.received.length;
    await renameTenant(tools, other.tenantId, name);
    await eventually('the hook has the event', () => receiver.received.length, { is: had + 1 });
  };

  await eventually('each hangs', () => hanging.received.length, { is: WABAS * AT_ONCE });
  for (let n = 0; n < 5; n += 1) {
    await rename(`Acme ${n}`);
    // Nothing is begun, and nothing ends.
    expect(ofNotices()).toEqual([]);
  }
  expect(hanging.received).toHaveLength(WABAS * AT_ONCE);
  expect(hanging.received.filter(({ answeredMs }) => answeredMs !== null)).toEqual([]);
  const taken = () => database.use().open - database.use().idle;
  await eventually('they take no connection', taken, { is: 0 });

  hanging.answerAll();
  await rename('Acme after all');
  // Their ends, and what is begun then: at most one statement each for a WABA.
  expect(ofNotices().length).toBeLessThanOrEqual(2 * WABAS);

  hanging.behave(answer(200));
  await eventually(
    'all have come',
    async () => {
      hanging.answerAll();
      const text = 'select count(*)::integer from alert_notices where delivered_at is not null';
      return await queryValue<number>(database, text);
    },
    { is: WABAS * EACH },
  );
});

test('a process keeps at most 1,000 requests of alerts under way, however many operations URLs hang', async () => {
  const { database } = await testDatabase();
  const { tenantId } = await freshTenant(database);
  const wabaIds = await addWabas(database, tenantId, 130, 'https://hangs.example');
  await addNotices(database, wabaIds, 2 * AT_ONCE);
  const claim = async (busy: number) =>
    await claimNotices(database, { leaseMs: 60_000, busy: wabaIds.slice(0, busy) });
  const first = await claim(0);
  expect(first).toHaveLength(1_000);
  // The first of each comes before the second of any.
  expect(new Set(first.map(({ wabaId }) => wabaId)).size).toBe(130);
  expect(await claim(130)).toHaveLength(0);
  expect(await claim(124)).toHaveLength(AT_ONCE);
});

test('alerts cost two statements for a pass and one for each WABA, and two to be written', async () => {
  const { database } = await testDatabase();
  const { tenantId } = await freshTenant(database);
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const wabaIds = await addWabas(database, tenantId, 5, receiver.url);
  await addNotices(database, wabaIds, 20);
  const noted: string[] = [];
  const tools = sendingFor(notingStatements<Database>(database, noted));
  const pass = async () => {
    noted.length = 0;
    const [came, begun] = [receiver.received.length, await startNotices(tools, [])];
    await Promise.all(begun.map(({ sent }) => sent));
    return { statements: noted.length, sent: receiver.received.length - came };
  };
  expect(await pass()).toEqual({ statements: 7, sent: 40 });
  expect(await pass()).toEqual({ statements: 7, sent: 40 });
  expect(await pass()).toEqual({ statements: 7, sent: 20 });
  expect(await pass()).toEqual({ statements: 1, sent: 0 });

  const open = async (count: number) => {
    const kind = 'waba_silent' as const;
    const conditions = wabaIds.slice(0, count).map((wabaId) => {
      const what = { kind, tenantId, wabaId, subject: `${wabaId} of ${count}` };
      return { ...what, reason: 'Nothing came.', details: {}, latestAt: null };
    });
    noted.length = 0;
    const looked = [{ kind, conditions, isWhole: false }];
    expect(await followConditions(tools.database, looked)).toEqual({ opened: count, ended: 0 });
    return noted.length;
  };
  const [one, five] = [await open(1), await open(5)];
  // Of the alert itself: what it is about, and the notice; the third is its entry in the audit log, which is the feed.
  expect(five - one).toBe(4 * 3);
  expect(await pass()).toEqual({ statements: 7, sent: 6 });
});
