import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  decideKeyRequest,
  keyRequestOf,
  type Requester,
  requestKey,
  withdrawKeyRequest,
} from '../../../src/features/keys/key-requests.ts';
import { revealKey } from '../../../src/features/keys/reveal-key.ts';
import { listAudit, OPERATOR_COMMAND } from '../../../src/platform/audit/audit.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { type FreshTenant, freshTenant } from '../../support/test-accounts.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { type OperationsStack, startOperationsStack } from '../endpoints/operations-stack.ts';

type Logged = { level: 'info' | 'warn'; fields: object };

let stack: OperationsStack;
let tenant: FreshTenant;
const logged: Logged[] = [];
const note = (level: Logged['level']) => (fields: object) => logged.push({ level, fields });

beforeAll(async () => {
  const logger = { debug: () => {}, info: note('info'), warn: note('warn'), error: () => {} };
  stack = await startOperationsStack({ logger });
});
afterAll(() => stack?.stop());
beforeEach(async () => {
  tenant = await freshTenant(stack.database);
});

let users = 0;
async function ask(purpose = 'order system') {
  users += 1;
  const requester: Requester = { id: `user-${users}`, name: `user${users}@shop.example` };
  const actor = { name: requester.name, requestId: null, ip: null };
  const tools = { database: stack.database, actor };
  const { id } = await requestKey(tools, tenant.wabaId, requester, { purpose });
  const handle = stack.client.workflow.getHandle(`api-key-request/${id}`);
  return { id, requester, tools, handle, reveal: () => revealKey(tools, tenant.wabaId, id) };
}

const decide = (id: string, state: 'approved' | 'denied', text = '') =>
  decideKeyRequest({ database: stack.database, actor: OPERATOR_COMMAND }, id, { state, note: text });

const stateOf = async (id: string) => (await keyRequestOf(stack, tenant.wabaId, id)).state;

type Handle = Awaited<ReturnType<typeof ask>>['handle'];

const running = (handle: Handle) =>
  eventually('the workflow has looked at the request', async () => {
    const description = await handle.describe().catch(() => null);
    return (description?.memo?.scopes ?? null) !== null;
  });

async function resultOf(handle: Handle): Promise<string> {
  await eventually('the workflow has ended', async () => {
    const description = await handle.describe().catch(() => null);
    return description !== null && description.status.name !== 'RUNNING';
  });
  return await handle.result();
}

/** All that Temporal keeps of a run: its description and its history. Bytes are payloads, which hold JSON. */
async function textOf(handle: Handle): Promise<string> {
  const described = await handle.describe();
  const textsIn = (value: unknown): string[] => {
    if (typeof value === 'string') return [value];
    if (value instanceof Uint8Array) return [Buffer.from(value).toString()];
    return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
  };
  return textsIn([described.raw, await handle.fetchHistory()]).join('\n');
}

const details = async (handle: Handle) =>
  String(await handle.query<string>('__temporal_workflow_metadata').then((data) => JSON.stringify(data)));

const taskOf = async (id: string) =>
  await query(stack.database, 'select 1 from workflow_tasks where workflow_id = :id', {
    id: `api-key-request/${id}`,
  });

describe('the workflow of a request', () => {
  test('request, approval by command, reveal: it says who asks for what, and ends with the reveal', async () => {
    const { id, requester, handle, reveal } = await ask('ERP [sync](https://evil.example) *now*');
    await running(handle);
    const { memo, searchAttributes } = await handle.describe();
    expect(memo).toMatchObject({ requestedBy: `user ${requester.id} of WABA ${tenant.wabaId}` });
    expect(searchAttributes).toMatchObject({
      HeliographWabaId: [tenant.wabaId],
      HeliographTenantId: [tenant.tenantId],
    });
    await decide(id, 'approved', 'as agreed');
    await eventually('it has seen the approval', async () => (await details(handle)).includes('Approved'));
    const { apiKey } = await reveal();
    expect(await resultOf(handle)).toBe('The key was revealed.');
    const kept = await textOf(handle);
    expect(kept).toContain(`user ${requester.id} asks for an API key`);
    for (const personal of [requester.name, 'ERP', 'Fixture Store', 'evil.example'])
      expect(kept).not.toContain(personal);
    expect(await taskOf(id)).toEqual([]);
    expect(apiKey).toMatch(/^ck_/);
  });

  test('nothing of the key is in the history', async () => {
    const { id, handle, reveal } = await ask();
    await decide(id, 'approved');
    const { apiKey, prefix } = await reveal();
    await resultOf(handle);
    const texts: string[] = [];
    JSON.stringify(await handle.fetchHistory(), (_, value) => {
      // What is stored of ours is the bytes of payloads, which show as base64.
      if (typeof value === 'string') texts.push(value, Buffer.from(value, 'base64').toString());
      return value;
    });
    const text = texts.join('\n');
    expect(text).toContain('asks for an API key');
    for (const secret of [apiKey, apiKey.slice(11), prefix]) expect(text).not.toContain(secret);
  });

  test('denied, withdrawn and expired requests end it too', async () => {
    const denied = await ask();
    await running(denied.handle);
    await decide(denied.id, 'denied', 'use the key that you have');
    expect(await resultOf(denied.handle)).toBe('Denied.');
    const withdrawn = await ask();
    await withdrawKeyRequest(withdrawn.tools, tenant.wabaId, withdrawn.id, withdrawn.requester.id);
    expect(await resultOf(withdrawn.handle)).toBe('Withdrawn by its requester.');
    const late = await ask();
    await execute(
      stack.database,
      `update api_key_requests set decide_until = now() + interval '2 seconds' where id = :id`,
      { id: late.id },
    );
    expect(await resultOf(late.handle)).toBe('Expired without a decision.');
    const [entry] = await listAudit(stack, { wabaId: tenant.wabaId }, { action: 'key_request.expired' });
    expect(entry).toMatchObject({ actor: 'system', target: `key request ${late.id}` });
    for (const { id } of [denied, withdrawn, late]) expect(await taskOf(id)).toEqual([]);
  });

  test('an approved key that nobody reveals lapses', async () => {
    const { id, handle, reveal } = await ask();
    await running(handle);
    await decide(id, 'approved');
    await execute(stack.database, 'update api_key_requests set reveal_until = now() where id = :id', { id });
    await handle.signal('changed');
    expect(await resultOf(handle)).toBe('Expired: the key was not revealed in time.');
    await expect(reveal()).rejects.toMatchObject({ code: 'key_not_approved' });
  });

  test('a reminder is logged after a day, and louder after three', async () => {
    const { id, handle, requester } = await ask();
    await running(handle);
    const remindedAfter = async (days: number) => {
      logged.length = 0;
      await execute(
        stack.database,
        `update api_key_requests set created_at = now() - :days * interval '1 day' where id = :id`,
        { days, id },
      );
      await handle.signal('changed');
      await eventually('reminded', () => logged.length > 0);
      await handle.signal('changed');
      return logged;
    };
    const fields = expect.objectContaining({ keyRequestId: id, requesterId: requester.id });
    expect(await remindedAfter(1.1)).toEqual([{ level: 'info', fields }]);
    expect(await remindedAfter(3.1)).toEqual([{ level: 'warn', fields }]);
    expect(JSON.stringify(logged)).not.toContain(requester.name);
    await decide(id, 'denied');
    await resultOf(handle);
  });
});

describe('signals from the Temporal UI', () => {
  test('decide nothing, whoever they say they are from', async () => {
    const { id, handle } = await ask();
    await running(handle);
    await handle.signal('approve', { note: 'ok', by: 'Kim' });
    await handle.signal('deny', 'no');
    await eventually('refused', async () =>
      (await details(handle)).includes('Signal refused: decide in the portal'),
    );
    expect(await stateOf(id)).toBe('requested');
    await decide(id, 'approved');
    await handle.signal('deny', 'on second thought');
    await handle.cancel();
    await eventually('shown', async () => (await details(handle)).includes('Approved'));
    expect(await stateOf(id)).toBe('approved');
    await decide(id, 'denied');
    await resultOf(handle);
  });

  test('malformed signals are ignored and noted, and never fail the workflow', async () => {
    const { id, handle } = await ask();
    await running(handle);
    const inputs = [[1], [['approve']], [{ note: 5 }], [{ approve: true }], ['a', 'b'], [{ by: {} }]];
    for (const args of inputs) await handle.signal('approve', ...args);
    await handle.signal('approve', 'x'.repeat(5_000));
    await handle.signal('approve', { by: 'a\u0000b' });
    await handle.signal('aprove');
    await handle.signal('changed', 'whatever');
    await eventually('noted', async () => (await details(handle)).includes('Signal ignored.'));
    expect(await details(handle)).toContain('Signal ignored: its input must be');
    await eventually('refused', async () => (await details(handle)).includes('Signal refused'));
    expect(await stateOf(id)).toBe('requested');
    await decide(id, 'denied');
    await resultOf(handle);
  });

  test('cancel changes nothing, and the workflow goes on', async () => {
    const { id, handle } = await ask();
    await running(handle);
    await handle.cancel();
    expect(await stateOf(id)).toBe('requested');
    await decide(id, 'denied');
    expect(await resultOf(handle)).toBe('Denied.');
  });

  test('terminate loses nothing, even after a signal whose bytes nobody can read', async () => {
    const { id, handle } = await ask();
    await running(handle);
    const payload = { metadata: { encoding: Buffer.from('json/plain') }, data: Buffer.from('{not json') };
    await stack.client.workflowService.signalWorkflowExecution({
      namespace: stack.config.temporal.namespace,
      workflowExecution: { workflowId: handle.workflowId },
      signalName: 'approve',
      input: { payloads: [payload] },
    });
    await handle.terminate('by a test');
    await decide(id, 'denied');
    await eventually('another run ended', async () => (await handle.describe()).status.name, {
      is: 'COMPLETED',
    });
    expect(await taskOf(id)).toEqual([]);
  });

  test('a request that is made and approved while Temporal is away is followed when it is back', async () => {
    const connection = Connection.lazy({ address: '127.0.0.1:9' });
    await stack.startWith(new Client({ connection }));
    const { id, handle, reveal } = await ask();
    await decide(id, 'approved');
    await reveal();
    await expect(handle.describe()).rejects.toThrow();
    expect(await taskOf(id)).toHaveLength(1);
    await stack.startWith(stack.client);
    await connection.close();
    expect(await resultOf(handle)).toMatch('revealed');
    expect(await taskOf(id)).toEqual([]);
    expect(
      await listAudit(stack, { wabaId: tenant.wabaId }, { action: 'key_request.revealed' }),
    ).toHaveLength(1);
  });
});
