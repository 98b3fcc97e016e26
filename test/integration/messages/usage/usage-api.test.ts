import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DEMO_PHONE_NUMBERS } from '../../../../dev/sandbox/demo-accounts.ts';
import { buildMessageStatus } from '../../../../dev/sandbox/payloads/message-status.ts';
import { serializeWebhookBody } from '../../../../dev/sandbox/payloads/webhook-body.ts';
import { buildApp } from '../../../../src/api/app.ts';
import { copyCosts } from '../../../../src/features/accounts/usage-costs.ts';
import { openGraphClient } from '../../../../src/platform/graph/graph-client.ts';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { housekeepingSteps, runStep } from '../../../../src/worker/housekeeping.ts';
import { silentLogger } from '../../../support/silent-logger.ts';
import { takeIn } from '../../../support/take-in.ts';
import { addKey, OTHER_WABA } from '../../api/api-harness.ts';
import { NUMBER, startSendingBase, WABA } from '../send/sending-stack.ts';

const TOKEN = 'EAAG-test-token';
const DAY_S = 86_400;
const today = Math.floor(Date.now() / 1_000 / DAY_S) * DAY_S;
const dayOf = (seconds: number) => new Date(seconds * 1_000).toISOString().slice(0, 10);

let stack: Awaited<ReturnType<typeof startSendingBase>>;
let app: FastifyInstance;

beforeAll(async () => {
  stack = await startSendingBase();
  const { config, database } = stack;
  app = buildApp({ config, database, objectStore: {} as never, logger: silentLogger });
  await app.ready();
});
afterAll(async () => {
  await app?.close();
  await stack?.close();
});

async function ask(query = '', authorization = stack.authorization) {
  const url = `/api/external/usage/messages${query}`;
  const answer = await app.inject({ url, headers: { authorization } });
  return { status: answer.statusCode, body: answer.json() };
}

const [phone] = DEMO_PHONE_NUMBERS;

/** Upstream reports it, charges it, and intake takes it. */
async function report(id: string, status: string, timestampSeconds: number) {
  const pricing = { billable: true, pricing_model: 'PMP', type: 'regular', category: 'marketing' };
  const request = { id, status, recipientId: '12025550143', timestampSeconds, fields: { pricing } };
  await fetch(`${stack.sandboxUrl}/sandbox/inbound`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ type: 'status', phoneNumberId: NUMBER, ...request }),
  });
  if (phone === undefined) throw new Error('the sandbox has no number');
  await takeIn(stack.database, serializeWebhookBody(buildMessageStatus(request, phone).body));
}

const fold = async () => {
  const { database, config } = stack;
  const tools = {
    database,
    logger: silentLogger,
    objectStore: {} as never,
    retentionDays: config.retentionDays,
  };
  const steps = housekeepingSteps(tools as never).filter(({ name }) => name === 'usage counts');
  await execute(database, `update housekeeping_steps set next_at = now() where step = 'usage counts'`);
  for (const step of steps) await runStep(tools as never, step);
  return steps.length;
};

test('counts are complete up to the time that the answer says, and amounts are those that upstream reports', async () => {
  expect((await ask()).body).toEqual({ asOf: null, isFinal: false, rows: [] });
  await report('wamid.1', 'sent', today - 60);
  await report('wamid.1', 'delivered', today + 1);
  await report('wamid.2', 'delivered', today + 2);
  expect(await fold()).toBe(1);
  const client = openGraphClient(stack.config);
  await copyCosts(stack.database, WABA, { client, token: TOKEN });
  // Once a day: this would be refused.
  await copyCosts(stack.database, WABA, { client, token: 'another' });
  client.close();

  const { status, body } = await ask('?groupBy=country,category,pricingType,phoneNumberId');
  const cell = { phoneNumberId: NUMBER, category: 'marketing', pricingType: 'regular', country: 'US' };
  const none = { sent: 0, delivered: 0, read: 0, failed: 0, billable: 0, received: 0 };
  const cost = {
    amount: '0.02',
    currency: 'USD',
    volume: 2,
    source: 'upstream',
    reportedAt: expect.any(String),
  };
  expect({ status, body }).toEqual({
    status: 200,
    body: {
      asOf: expect.stringMatching(/Z$/),
      isFinal: false,
      rows: [
        { day: dayOf(today - 60), ...cell, ...none, sent: 1, cost: null },
        { day: dayOf(today), ...cell, ...none, sent: 1, delivered: 2, billable: 2, cost },
      ],
    },
  });
  // A foreign WABA sees nothing of it.
  const other = await addKey(stack.database, OTHER_WABA);
  expect((await ask('', other.authorization)).body.rows).toEqual([]);
});

test('a month is one row, and what is over for long is final', async () => {
  const month = `${dayOf(today).slice(0, 7)}-01`;
  const { body } = await ask(`?from=${month}&granularity=month`);
  expect(body.rows.map(({ day, billable }: Record<string, unknown>) => ({ day, billable }))).toEqual([
    { day: month, billable: 2 },
  ]);
  expect((await ask('?from=2026-01-01&to=2026-01-31')).body).toMatchObject({ isFinal: true, rows: [] });
});

test.each([
  ['?from=2026-11-02&to=2026-11-01', 'from'],
  ['?from=2025-01-01&to=2026-11-01', 'from'],
  ['?to=2026-02-30', 'to'],
  ['?to=2026-13-01', 'to'],
  ['?groupBy=tenant', 'groupBy'],
  ['?groupBy=country,', 'groupBy'],
  ['?granularity=hour', 'granularity'],
  ['?since=2026-11-01', 'since'],
])('%s is refused and names the parameter', async (query, param) => {
  const { status, body } = await ask(query);
  expect({ status, param: body.error.param }).toEqual({ status: 400, param });
});
