import type { Client } from '@temporalio/client';
import { expect, onTestFinished, test } from 'vitest';
import { makeEndpointHealth } from '../../../src/engine/deliveries/breaker.ts';
import { TroubleWatch } from '../../../src/engine/deliveries/dispatch/trouble-watch.ts';
import { EndpointLimiter } from '../../../src/engine/deliveries/loop/attempt-limits.ts';
import { startEndpointKeeper } from '../../../src/engine/deliveries/loop/endpoint-keeper.ts';
import { lookAtTrouble } from '../../../src/engine/deliveries/trouble/look.ts';
import { listEndpointsInTrouble } from '../../../src/engine/queue/trouble.ts';
import { enableEndpoint, holdEndpoint } from '../../../src/features/endpoints/endpoint-modes.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { listAudit, SYSTEM } from '../../../src/platform/audit/audit.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { startWorker } from '../../../src/worker/start-worker.ts';
import { ACCOUNT, bodyOf, messageStatus, textMessage } from '../../support/load/upstream-bodies.ts';
import { addEndpoints, queueEach } from '../../support/many-endpoints.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { useTemporal } from '../../support/temporal-client.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { drawIdsApart, seededWorkerDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, type Behaviour, eventually, startReceiver } from '../../support/webhook-receiver.ts';

const client = useTemporal();

/** An endpoint whose id no other test has: runs are found by it. */
async function installation(behaviour: Behaviour, overrides: Record<string, string> = {}) {
  const { database, url } = await seededWorkerDatabase(20);
  await drawIdsApart(database);
  const receiver = await startReceiver(behaviour);
  onTestFinished(() => receiver.close());
  const { id } = await addEndpoint(database, ACCOUNT.wabaId, `${receiver.url}/hook`);
  const config = loadConfig(testSettings(url, overrides));
  const work = async () => {
    const worker = await startWorker(config, silentLogger);
    let stopped: Promise<void> | null = null;
    const stop = () => (stopped ??= worker.stop());
    onTestFinished(stop);
    return { stop };
  };
  const handle = client().workflow.getHandle(`endpoint/${id}`);
  onTestFinished(async () => void (await handle.terminate().catch(() => undefined)));
  const details = async () => {
    const metadata = await handle.query<{ currentDetails?: string }>('__temporal_workflow_metadata');
    return metadata.currentDetails ?? '';
  };
  const shows = (...parts: (string | RegExp)[]) =>
    eventually(`its run shows ${parts.join(', ')}`, async () => {
      const text = await details().catch(() => '');
      return parts.every((part) => (typeof part === 'string' ? text.includes(part) : part.test(text)));
    });
  const status = async () => (await handle.describe().catch(() => null))?.status.name ?? 'none';
  const hold = (mode: 'paused' | 'disabled') =>
    holdEndpoint({ database, actor: SYSTEM }, ACCOUNT.wabaId, { id, mode, reason: 'their maintenance' });
  const enable = () =>
    enableEndpoint({ database, actor: SYSTEM }, ACCOUNT.wabaId, { id, waiting: 'send', by: 'a test' });
  return { database, receiver, id, work, handle, details, shows, status, hold, enable };
}

/** Failing once leaves a delivery waiting for longer than a test lasts. */
const LONG_WAIT = { HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS: '3600,3600' };

const text = (id: string) => textMessage(id, 'x');

const takeIn = (database: Database, ...items: Parameters<typeof bodyOf>[1][number][]) =>
  insertBodies(database, [bodyOf(ACCOUNT, items)]);

const isOver = (status: string) => status === 'COMPLETED';

test('an outage is one run, with all that waits, from the first failed attempt to the last delivery', async () => {
  const { database, receiver, id, work, handle, shows, status, details } = await installation(answer(503));
  await work();
  const items = Array.from({ length: 30 }, (_, n) => text(`wamid.OUTAGE${n}`));
  await takeIn(database, ...items, messageStatus('wamid.STATUS', 'sent'));
  await shows(
    /\*\*(failing|probing)\*\* since/,
    'Pending: 31',
    '`message` 30',
    '`status` 1',
    'the endpoint returned 503',
  );
  expect(await details()).toContain(`https://gateway.example/portal/w/${ACCOUNT.wabaId}/endpoints/${id}`);
  expect(await details()).not.toContain('/hook');
  const attributes = (await handle.describe()).typedSearchAttributes.getAll();
  expect(Object.fromEntries(attributes.map(({ key, value }) => [key.name, value]))).toMatchObject({
    HeliographWabaId: ACCOUNT.wabaId,
    HeliographEndpointId: id,
    HeliographTenantId: expect.any(String),
  });
  await shows('**probing** since', 'Next probe: ', / wait for a probe that succeeds[,)]/);
  // What is not there is not counted, and the box of the Temporal UI shows how old this is and the link: its first lines.
  expect((await details()).split('\n\n')[0]).toMatch(/^\*\*probing\*\* since .* UTC \(as of .* UTC\): /);
  expect(await details()).not.toMatch(/[(,] ?0 /);
  expect((await details()).split('\n\n')[1]).toContain(`[Endpoint ${id}](https://gateway.example/portal/w/`);
  receiver.behave(answer(200));
  await eventually('it ends', async () => isOver(await status()));
  expect(await query(database, 'select 1 from delivery_queue')).toEqual([]);
});

test('a run says since when its endpoint accepts deliveries again, until the backlog has gone out', async () => {
  const { database, receiver, work, shows, status } = await installation(answer(503));
  await execute(database, 'update webhook_endpoints set max_in_flight = 1');
  await work();
  await takeIn(database, ...Array.from({ length: 30 }, (_, n) => text(`wamid.BACKLOG${n}`)));
  await shows('**probing** since', 'Pending: 30');
  receiver.behave(async (webhook, response) => {
    await new Promise((resolve) => setTimeout(resolve, 700));
    return answer(200)(webhook, response);
  });
  await shows('**recovering** since', /Delivered since then: [1-9]/, /Pending: [12]?[0-9]\*\*/);
  await eventually('it ends', async () => isOver(await status()));
});

test('what is done in the portal is shown, and while nothing changes the run asks for nothing', async () => {
  const all = await installation(answer(503), LONG_WAIT);
  const { database, receiver, work, handle, shows, status } = all;
  await work();
  await takeIn(database, text('wamid.HELD'));
  await shows('**failing** since', 'Next retries:', 'attempt 2 of `dlv_');
  await all.hold('paused');
  await shows('**paused** since', 'their maintenance', 'Pending: 1', /[(]1 wait (for a retry|until the)/);
  await eventually('it rests', async () => {
    const { events = [] } = await handle.fetchHistory();
    const opened = events?.filter((event) => event.timerStartedEventAttributes).length;
    const closed = events?.filter(
      (event) => event.timerFiredEventAttributes ?? event.timerCanceledEventAttributes,
    );
    const { pendingActivities, pendingWorkflowTask } = (await handle.describe()).raw;
    return opened === closed?.length && (pendingActivities ?? []).length === 0 && !pendingWorkflowTask;
  });
  await takeIn(database, text('wamid.LATER'));
  receiver.behave(answer(200));
  await all.enable();
  await shows('Pending: 1', 'Next retries:');
  expect(await status()).toBe('RUNNING');
});

test('a success ends nothing that still waits, and an ended outage leaves no run', async () => {
  const { database, receiver, work, status } = await installation((webhook, response) =>
    answer(webhook.headers['x-service-attempt'] === '1' ? 500 : 200)(webhook, response),
  );
  await work();
  await takeIn(database, text('wamid.ONCE'));
  await eventually('delivered', () => receiver.received.length, { is: 2 });
  await eventually('it ends', async () => isOver(await status()));
});

test('a run that was lost while nothing is attempted is there again after a restart', async () => {
  const { database, work, handle, shows, status, hold } = await installation(answer(503), LONG_WAIT);
  const first = await work();
  await takeIn(database, text('wamid.LOST'));
  await shows('**failing** since');
  await hold('disabled');
  await shows('**disabled** since');
  await first.stop();
  await handle.terminate('as if Temporal had lost it');
  expect(await status()).toBe('TERMINATED');
  await work();
  await shows('**disabled** since', 'Pending: 1', 'the endpoint returned 503');
});

test('the body of a response is shown where several customers have it, without what may be a number', async () => {
  const body = 'Backend of 4915112345678 is down\nat line 1';
  const { database, work, shows, details } = await installation((webhook, response) => {
    const isFirst = webhook.body.includes('wamid.ONE');
    response.writeHead(500).end(isFirst ? 'No customer Ada' : body);
    return null;
  }, LONG_WAIT);
  await work();
  await takeIn(database, text('wamid.ONE'));
  await shows('**failing** since');
  expect(await details()).not.toContain('Ada');
  for (const [id, from] of [
    ['wamid.TWO', '12025550177'],
    ['wamid.THREE', '12025550178'],
  ] as const) {
    const body = String(bodyOf(ACCOUNT, [text(id)])).replaceAll(/"(from|wa_id)":"\d+"/g, `"$1":"${from}"`);
    await insertBodies(database, [Buffer.from(body)]);
  }
  await shows('the response begins with `Backend of … is down`');
});

test('what failed is waiting until it is delivered, also while its next attempt is due', async () => {
  const { database, id, work, shows } = await installation(answer(503), LONG_WAIT);
  const worker = await work();
  await takeIn(database, text('wamid.DUE'));
  await shows('**failing** since');
  await worker.stop();
  await database.raw(`update delivery_queue set state = 'due', next_attempt_at = null, created_at = now()`);
  const tools = { database, publicUrl: 'https://gateway.example' };
  expect(await lookAtTrouble(tools, id, null)).toMatchObject({ state: 'failing' });
  await database.raw('update delivery_queue set attempts = 0');
  expect(await lookAtTrouble(tools, id, null)).toContain('nothing waits');
});

test('updates do what the buttons of the portal do, with the same audit entries, and refuse what is of no use', async () => {
  const all = await installation(answer(503), LONG_WAIT);
  const { database, receiver, work, handle, shows, status, id } = all;
  await work();
  await takeIn(database, text('wamid.A'), text('wamid.B'), text('wamid.C'));
  await shows('**failing** since', 'Pending: 3');
  const update = (name: string, ...args: unknown[]) =>
    handle.executeUpdate<string, [unknown]>(name, { args: args as [unknown] });
  const refusalOf = (name: string, ...args: unknown[]) =>
    update(name, ...args).then(
      () => 'accepted',
      (error) => String(error.cause?.message ?? error.message),
    );
  expect(await refusalOf('enable', 'send')).toContain('takes deliveries');
  expect(await refusalOf('enable', 'all')).toContain('"send" or "drop"');
  expect(await refusalOf('skipHead', '7')).toContain('dlv_');
  expect(await refusalOf('skipHead', `dlv_${'0'.repeat(12)}7${'0'.repeat(19)}`)).toContain(
    'There is no delivery',
  );
  expect(await refusalOf('pause', 7)).toContain('the reason is a text');

  // The UI sends null where nothing was entered.
  const dropped = await update('skipHead', null);
  await shows('Pending: 2');
  expect(await update('pause', 'server migration')).toContain('paused');
  await shows('**paused** since', 'server migration', 'Pending: 2');
  expect(await refusalOf('retryNow')).toContain('enable it first');
  expect(await refusalOf('pause')).toContain('paused already');
  expect(await update('enable', 'send')).toContain('enabled');
  await shows('**retrying** since', 'Pending: 2');
  expect(receiver.received).toHaveLength(3);
  expect(await update('retryNow')).toContain('2 retries are due now');
  await eventually('both are attempted', () => receiver.received.length, { is: 5 });
  await shows('attempt 3 of');
  await update('pause', null);
  await shows('**paused** since');
  expect(await update('enable', 'drop')).toContain('2 deliveries were dropped');
  await eventually('it ends', async () => isOver(await status()));

  const entries = await listAudit(
    { database },
    { wabaId: ACCOUNT.wabaId },
    { actor: 'Temporal UI operator' },
  );
  const endpoint = `endpoint ${id}`;
  expect(entries.map(({ action, target, detail }) => [action, target, detail]).toReversed()).toEqual([
    ['delivery.dropped', expect.stringMatching(/^delivery dlv_/), { endpointId: id }],
    ['endpoint.paused', endpoint, { reason: 'server migration' }],
    ['endpoint.enabled', endpoint, { waiting: 'send', dropped: 0 }],
    ['endpoint.retried', endpoint, { retried: 2, probed: false }],
    ['endpoint.paused', endpoint, { reason: null }],
    ['endpoint.enabled', endpoint, { waiting: 'drop', dropped: 2 }],
  ]);
  expect(dropped).toContain(entries.at(-1)?.target.replace('delivery ', ''));
});

test('endpoints in trouble are found however many they are, page by page', async () => {
  const { database } = await seededWorkerDatabase();
  const urls = Array.from({ length: 7 }, (_, n) => `https://tenant.example/${n}`);
  const ids = await addEndpoints(database, ACCOUNT.wabaId, { urls, ratePerSecond: null });
  await queueEach(database, ACCOUNT.wabaId, ids, (n) => `lane ${n}`);
  const [open = '', failing = '', ...paused] = ids;
  await execute(database, `update endpoint_health set mode = 'paused' where endpoint_id = any (:paused)`, {
    paused,
  });
  await execute(
    database,
    `update delivery_queue set state = 'retrying', attempts = 1, next_attempt_at = now() where endpoint_id = :failing`,
    { failing },
  );
  const found = async (asked: readonly string[] | null) => {
    const inTrouble: string[] = [];
    for await (const id of listEndpointsInTrouble(database, asked, 2)) inTrouble.push(id);
    return inTrouble;
  };
  expect(await found(null)).toEqual([failing, ...paused]);
  expect(await found([open, failing])).toEqual([failing]);
});

test('a run is told of an attempt once its endpoint shows how it went, so that its first look is right', async () => {
  const { database } = await seededWorkerDatabase();
  const { id } = await addEndpoint(database, ACCOUNT.wabaId, 'https://tenant.example/hook');
  const isFailing = 'select 1 from endpoint_health where failing_since is not null';
  const states: boolean[] = [];
  const temporal = {
    withDeadline: (_: number, call: () => Promise<unknown>) => call(),
    workflow: {
      list: async function* () {},
      signalWithStart: async () => states.push((await query(database, isFailing)).length === 1),
    },
  } as unknown as Client;
  const watch = new TroubleWatch();
  const shared = { database, logger: silentLogger, isLeader: () => false };
  const health = makeEndpointHealth();
  const loops = [
    watch.start({ ...shared, client: temporal, taskQueue: 'q' }),
    startEndpointKeeper({
      ...shared,
      health,
      limiter: new EndpointLimiter(),
      troubleWatch: watch,
      retryScheduleMs: [5_000],
      disableAfterHours: 72,
    }),
  ];
  onTestFinished(async () => void (await Promise.all(loops.map((loop) => loop.stop()))));
  await database.transaction(async (trx) => {
    await execute(trx, 'lock table endpoint_minutes in exclusive mode');
    health.record(id, { deliveryId: 'd', ok: false, isRepetition: false, durationMs: 5 });
    watch.attempted({ endpoint: { id }, eventType: 'message', attempts: 0 } as never, FAILED);
    const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    await eventually('it is being noted', async () => (await query(database, waiting)).length, { is: 1 });
    for (let turns = 0; turns < 100; turns += 1) {
      for (const loop of loops) loop.wake();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(states).toEqual([]);
  });
  await eventually('the run is told', () => states.length, { is: 1 });
  expect(states).toEqual([true]);
});

const FAILED = { state: 'retrying', reason: 'x', attempt: 1, delayMs: 1, isExtra: false, run: null } as const;

test('calm traffic and an unchanged outage cost PostgreSQL and Temporal nothing', async () => {
  const statements: string[] = [];
  const calls: string[] = [];
  const database = {
    raw: async (statement: string) => {
      statements.push(statement);
      return { rows: [], rowCount: 0 };
    },
  } as unknown as Database;
  const temporal = {
    withDeadline: (_: number, call: () => Promise<unknown>) => call(),
    workflow: {
      list: async function* () {},
      signalWithStart: async (_: string, { workflowId }: { workflowId: string }) => calls.push(workflowId),
      getHandle: () => ({ signal: async () => undefined }),
    },
  } as unknown as Client;
  const watch = new TroubleWatch();
  const loop = watch.start({
    client: temporal,
    database,
    logger: silentLogger,
    taskQueue: 'q',
    isLeader: () => true,
  });
  onTestFinished(() => loop.stop());
  await eventually('the walk at the start', () => statements.length > 0);
  statements.length = 0;
  const attempt = (id: string) => ({ endpoint: { id }, eventType: 'message', attempts: 0 }) as never;
  for (let n = 0; n < 10_000; n += 1)
    watch.attempted(attempt('1'), { state: 'delivered', statusCode: 200, attempt: 1 });
  watch.attemptedSoFar()();
  for (let turns = 0; turns < 50; turns += 1) {
    loop.wake();
    await new Promise(setImmediate);
  }
  expect([statements, calls]).toEqual([[], []]);
  // However many attempts fail: one signal of each endpoint within some seconds.
  for (let n = 0; n < 10_000; n += 1) watch.attempted(attempt(String(n % 3)), FAILED);
  watch.attemptedSoFar()();
  await eventually('each is told', () => calls.length, { is: 3 });
  for (let n = 0; n < 10_000; n += 1) watch.attempted(attempt(String(n % 3)), FAILED);
  watch.attemptedSoFar()();
  for (let turns = 0; turns < 50; turns += 1) {
    loop.wake();
    await new Promise(setImmediate);
  }
  expect(calls.toSorted()).toEqual(['endpoint/0', 'endpoint/1', 'endpoint/2']);
  expect(statements).toEqual([]);
});
