import { buffer } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eraseCustomer } from '../../../../src/ops/erasures/erasures.ts';
import { exportCustomer } from '../../../../src/ops/erasures/export-customer.ts';
import {
  expireContacts,
  expireConversations,
} from '../../../../src/ops/erasures/retention/tenant-retention.ts';
import { parseEncryptionKeys } from '../../../../src/platform/crypto/secret-box.ts';
import { openObjectStore } from '../../../../src/platform/object-store/object-store.ts';
import { execute, queryOnly } from '../../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../../support/take-in.ts';
import { testSecretBox } from '../../../support/test-accounts.ts';
import { eraseAll, unzipped } from '../../erasures/erasure-world.ts';
import { marketing, optOutsOf, REFUSED, someone, utility } from './opt-out-calls.ts';
import { sendingStackOfFile } from './sending-stack.ts';

const stack = sendingStackOfFile();

const { preference, stop, resume, call, outcome } = optOutsOf(stack);

const ACTOR = { name: 'test', requestId: null, ip: null };

/** Erases a customer to the end. */
async function erase(phone: string): Promise<void> {
  const { database } = stack;
  const tools = {
    database,
    secretBox: testSecretBox,
    encryptionKeys: parseEncryptionKeys(stack.config.encryptionKeys),
    objectStore: openObjectStore(stack.config.objectStore),
    cancelWorkflows: async () => undefined,
  };
  onTestFinished(() => tools.objectStore.close());
  const { erasureId } = await eraseCustomer({ ...tools, actor: ACTOR }, stack.wabaId, { phone });
  await eraseAll(tools, erasureId);
}

describe('an erased customer who comes back', () => {
  test('still gets no marketing, under each former id, and only hashes were kept', async () => {
    const { phone, userId } = someone();
    await takeIn(stack.database, preference({ value: 'stop', at: 0, wa_id: phone, user_id: userId }));
    await call('', { customer: phone, scope: 'marketing', reason: `told ${phone}` });
    await stack.send(utility(phone));
    await erase(phone);
    const kept = await queryOnly<{ rows: number; texts: string }>(
      stack.database,
      `select count(*)::integer as rows, string_agg(to_jsonb(o)::text, ' ') as texts from opt_outs o where waba_id = :wabaId`,
      { wabaId: stack.wabaId },
    );
    expect(kept.rows).toBe(2);
    expect(kept.texts).not.toContain(phone);
    expect(kept.texts).not.toContain(userId);
    const { to: _, ...byUserId } = { ...marketing(''), recipient: userId };
    expect(await outcome(byUserId)).toEqual(REFUSED);
    expect(await outcome(marketing(phone))).toEqual(REFUSED);
    expect((await call('/search', {})).body.data).toEqual([]);
    expect((await call('/search', { customer: phone })).body.data).toHaveLength(2);
    // Upstream's own ends by upstream, the tenant's by the tenant.
    await takeIn(stack.database, resume(phone, 9));
    expect(await outcome(marketing(phone))).toEqual(REFUSED);
    expect((await call('/end', { customer: phone, evidence: 'x' })).body).toMatchObject({
      ended: 1,
      left: [],
    });
    expect(await outcome(marketing(phone))).toBe(200);
  });

  test('so does one of whom the tenant kept nothing for long', async () => {
    const { phone } = someone();
    await stack.send(utility(phone));
    await takeIn(stack.database, stop(phone));
    const { database, wabaId } = stack;
    await execute(
      database,
      `insert into tenant_policies (tenant_id, message_days) select tenant_id, 1 from wabas where waba_id = :wabaId
       on conflict (tenant_id) do update set message_days = 1`,
      { wabaId },
    );
    await execute(database, 'delete from outbound_messages where waba_id = :wabaId', { wabaId });
    await execute(database, 'delete from messages where waba_id = :wabaId', { wabaId });
    const long = `now() - interval '9 days'`;
    await execute(database, `update conversations set last_message_at = ${long} where waba_id = :wabaId`, {
      wabaId,
    });
    await execute(database, `update contacts set updated_at = ${long} where waba_id = :wabaId`, { wabaId });
    await expireConversations({ database } as never);
    await expireContacts({ database } as never);
    const { left } = await queryOnly<{ left: string }>(
      database,
      'select count(*) as left from contacts where waba_id = :wabaId',
      { wabaId },
    );
    expect(left).toBe('0');
    expect(await outcome(marketing(phone))).toEqual(REFUSED);
  });
});

test('an export has the opt-outs of the customer', async () => {
  const { phone } = someone();
  await takeIn(stack.database, stop(phone));
  const { archive } = await exportCustomer(
    {
      database: stack.database,
      objectStore: {} as never,
      actor: { name: 'test', requestId: null, ip: null },
    },
    stack.wabaId,
    { phone },
  );
  const files = unzipped(await buffer(archive));
  expect(JSON.parse(String(files.get('customer.json')))).toMatchObject({
    optOuts: [{ scope: 'marketing', source: 'upstream', phoneNumberId: stack.number, reason: null }],
  });
});
