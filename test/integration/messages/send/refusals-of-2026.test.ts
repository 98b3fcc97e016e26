import { expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { sendingStackOfFile, textTo } from './sending-stack.ts';

/**
 * What upstream refuses since 2026. 131042: unpaid.test.ts; 131055, 131063, 134100 and 134102: message-templates.test.ts; 138038 and 2494191:
 * thread-of-others.test.ts and thread-control.test.ts; 2388318 and 2388330: facade-passes.test.ts; 131201 and 131208 in reports: arrival-orders.test.ts; 138007: call-entries.test.ts. Registering numbers, sharing of credit lines and histories (133005, 1752041, 2593107 to 2593109) are
 * calls that nothing here makes.
 */
const stack = sendingStackOfFile();

const refuse = async (code: number, { status = 400, times = 1 } = {}) =>
  await stack.addFault({ match: 'send', kind: 'status', status, code, times });

const DIRECT = { ...textTo('12025550143'), category: 'utility', ttl_seconds: 600 };

test.each([
  [100, 'A parameter is not valid; "upstream" says which.'],
  [131_049, 'Wait at least 24 hours.'],
  [131_050, 'The recipient has opted out'],
  [131_062, 'This message needs a phone number'],
  [139_200, 'The account may send nothing without a template'],
])('a message refused with %i is not sent again, and says what to do', async (code, advice) => {
  await refuse(code, { times: 9 });
  const { status, body } = await stack.send(DIRECT);
  expect([status, body.error.code, body.error.upstream.code]).toEqual([424, 'upstream_refused', code]);
  expect(body.error.advice).toContain(advice);
  expect(await stack.sendRequests()).toHaveLength(1);
  const { body: message } = await stack.get(body.error.serviceMessageId);
  expect([message.state, message.error.advice]).toEqual(['failed', body.error.advice]);
  const due = await query(
    stack.database,
    `select workflow_type from workflow_tasks where waba_id = :wabaId and workflow_type = 'sendMessage'`,
    { wabaId: stack.wabaId },
  );
  expect(due).toEqual([]);
});

test.each([
  [131_057, 500],
  [131_208, 400],
  [133_016, 400],
  [134_101, 400],
])('a message refused with %i is sent once upstream takes it', async (code, status) => {
  await refuse(code, { status });
  const sent = await stack.send(textTo('12025550143'));
  expect(sent.status).toBeLessThan(300);
  await eventually(
    'upstream has it',
    async () => (await stack.get(sent.body.serviceMessageId)).body.state === 'accepted',
  );
  expect(await stack.sendRequests()).toHaveLength(2);
});
