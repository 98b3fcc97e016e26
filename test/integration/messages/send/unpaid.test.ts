import { expect, test } from 'vitest';
import { lookForConditions } from '../../../../src/ops/alerts/conditions.ts';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../../support/take-in.ts';
import { sendingStackOfFile } from './sending-stack.ts';

const stack = sendingStackOfFile();

const TEXT = { to: '12025554901', type: 'text', text: { body: 'Hello' } };

/** Numbers whose messages upstream does not deliver for want of a payment method. */
async function unpaid(): Promise<string[]> {
  const looked = await lookForConditions(stack.database, new Date());
  return looked.flatMap((one) =>
    'conditions' in one && one.kind === 'account_restricted'
      ? one.conditions.filter(({ wabaId }) => wabaId === stack.wabaId).map(({ subject }) => subject)
      : [],
  );
}

function failed(code: number, recipient = TEXT.to): Buffer {
  const metadata = { display_phone_number: '12025550100', phone_number_id: stack.number };
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const errors = [{ code, title: 'Business eligibility payment issue' }];
  const status = { id: `wamid.unpaid${code}`, status: 'failed', timestamp, recipient_id: recipient, errors };
  const changes = [{ field: 'messages', value: { metadata, statuses: [status] } }];
  return Buffer.from(JSON.stringify({ entry: [{ id: stack.wabaId, changes }] }));
}

const settled = async () => {
  await execute(stack.database, `update upstream_troubles set until = now() - interval '1 minute'`);
};

test('a message that upstream does not deliver for want of a payment method opens an alert for its number, whether it says so later or at once', async () => {
  const alert = `${stack.wabaId} payment of ${stack.number}`;
  await takeIn(stack.database, failed(131_026), failed(131_049));
  expect(await unpaid()).toEqual([]);
  await takeIn(stack.database, failed(131_042));
  expect(await unpaid()).toEqual([alert]);
  await settled();
  expect(await unpaid()).toEqual([]);
  await stack.addFault({ match: 'send', kind: 'status', status: 400, code: 131_042, times: 1 });
  expect((await stack.send(TEXT)).status).toBe(424);
  expect(await unpaid()).toEqual([alert]);
});
