import { beforeEach, describe, expect, test } from 'vitest';
import type { OwnObject } from '../../../../src/api/graph/allowed-calls.ts';
import { listAudit } from '../../../../src/platform/audit/audit.ts';
import { queryOne } from '../../../../src/platform/postgres/sql.ts';
import { addUser, openAlerts, turn } from '../../alerts/alerts-fixtures.ts';
import { CHANGES, type Change } from './changing-calls.ts';
import { addFacadeKey } from './facade-key.ts';
import { apiOnRecordingUpstream, type UpstreamAccount } from './recording-upstream.ts';

/** Changes of the WABA's own objects: each leaves a trace, and needs a scope of its own. */

const { api, upstream } = apiOnRecordingUpstream();
let own: UpstreamAccount;

beforeEach(async () => {
  own = await upstream.newAccount(api.database);
  upstream.calls.length = 0;
  upstream.reply(() => ({ json: { success: true } }));
});

const idOf = (object: OwnObject) =>
  ({ waba: own.wabaId, number: own.number, template: own.template, flow: own.flow })[object];

const pathOf = ({ object, edge }: Pick<Change, 'object' | 'edge'>) =>
  `/graph/v26.0/${idOf(object)}${edge === '' ? '' : `/${edge}`}`;

async function change(made: Change, payload?: object | Buffer, { key = own.key, type = '' } = {}) {
  return await api.app.inject({
    method: made.method,
    url: pathOf(made),
    headers: { authorization: `Bearer ${key}`, ...(type !== '' && { 'content-type': type }) },
    ...(payload !== undefined && { payload }),
  });
}

const entriesOf = async () => (await listAudit(api, { wabaId: own.wabaId })).reverse();

describe('a change that is passed on', () => {
  test('leaves one when upstream refuses it, and when upstream does not answer', async () => {
    const flows: Change = { method: 'POST', object: 'waba', edge: 'flows' };
    upstream.reply(() => ({ status: 400, json: { error: { message: 'no', code: 100 } } }));
    await change(flows, { name: 'f', endpoint_uri: 'https://shop.example/flow' });
    upstream.reply(() => 'hang up');
    await change(flows, { name: 'f' });
    const entries = await entriesOf();
    expect(entries.map(({ action, detail }) => [action, detail.status])).toEqual([
      ['graph.changed', 400],
      ['graph.changed', null],
    ]);
  });

  test('reads, and what is refused here, leave none', async () => {
    await api.app.inject({
      url: pathOf({ object: 'waba', edge: 'flows' }),
      headers: { authorization: `Bearer ${own.key}` },
    });
    await change({ method: 'POST', object: 'waba', edge: 'flows' }, { access_token: 'x' });
    await change({ method: 'POST', object: 'waba', edge: 'subscribed_apps' });
    expect(await entriesOf()).toEqual([]);
  });
});

describe('where forms of customers go', () => {
  const uri = 'https://evil.example/flow?token=s3cret';
  const flowJson = JSON.stringify({ version: '2.1', data_channel_uri: uri });

  type Given = { payload: object | Buffer; type?: string };

  async function flowFile(): Promise<Given> {
    const form = new FormData();
    form.set('asset_type', 'FLOW_JSON');
    form.set('file', new Blob([flowJson], { type: 'application/json' }), 'flow.json');
    const encoded = new Response(form);
    const type = encoded.headers.get('content-type') ?? '';
    return { payload: Buffer.from(await encoded.arrayBuffer()), type };
  }

  const KEY_TEXT = '-----BEGIN PUBLIC KEY-----';
  const FLOWS: Change = { method: 'POST', object: 'waba', edge: 'flows' };
  const FLOW: Change = { method: 'POST', object: 'flow', edge: '' };
  const ASSETS: Change = { ...FLOW, edge: 'assets' };
  const KEYS: Change = { method: 'POST', object: 'number', edge: 'whatsapp_business_encryption' };
  const SETTINGS: Change = { method: 'POST', object: 'number', edge: 'settings' };
  const SIP = {
    calling: { sip: { status: 'ENABLED', servers: [{ hostname: 'evil.example', port: 5061 }] } },
  };
  const urlEncoded: Given = {
    payload: Buffer.from(`endpoint_uri=${encodeURIComponent(uri)}`),
    type: 'application/x-www-form-urlencoded',
  };
  const TO_EVIL = ': evil.example.';

  const SETS: [string, Change, Given | (() => Promise<Given>), string][] = [
    ['of a new flow', FLOWS, { payload: { name: 'f', endpoint_uri: uri } }, TO_EVIL],
    ['of a flow, whatever the case of the member', FLOW, { payload: { Endpoint_URI: uri } }, TO_EVIL],
    ['as a form', FLOW, urlEncoded, TO_EVIL],
    ['as no URL', FLOW, { payload: { endpoint_uri: 'nonsense' } }, '.'],
    ['in the JSON of a flow of an early version', ASSETS, flowFile, '.'],
    ['in that JSON as a member', FLOWS, { payload: { name: 'f', flow_json: flowJson } }, '.'],
    ['of calls, to a SIP server', SETTINGS, { payload: SIP }, TO_EVIL],
    ['by the key that encrypts them', KEYS, { payload: { business_public_key: KEY_TEXT } }, '.'],
  ];

  test.each(SETS)('%s, is an alert and an entry of its own', async (_name, made, given, end) => {
    const admin = await addUser(api.database, `boss@${own.wabaId}.example`, { ...own, role: 'admin' });
    const { payload, type = '' } = typeof given === 'function' ? await given() : given;
    expect((await change(made, payload, { type })).statusCode).toBe(200);
    const target = `${made.object === 'waba' ? 'WABA' : made.object} ${idOf(made.object)}`;
    expect((await entriesOf()).map((entry) => [entry.action, entry.target])).toEqual([
      ['graph.destination_set', target],
    ]);
    await turn(api.database);
    expect(await openAlerts(api.database, admin)).toEqual([`url_set_by_key ${target}`]);
    const told = 'select reason from alerts where waba_id = :wabaId';
    const alert = await queryOne<{ reason: string }>(api.database, told, { wabaId: own.wabaId });
    expect(alert?.reason).toMatch(/^API key \d+ set /);
    expect(alert?.reason).toContain(target);
    expect(alert?.reason.endsWith(end)).toBe(true);
    for (const text of [alert?.reason, JSON.stringify(await entriesOf())]) {
      expect(text).not.toContain('s3cret');
      expect(text).not.toContain(KEY_TEXT);
    }
  });

  test('is one when upstream may have taken it without an answer, and none when it refused', async () => {
    const admin = await addUser(api.database, `boss@${own.wabaId}.example`, { ...own, role: 'admin' });
    const flow: Change = { method: 'POST', object: 'flow', edge: '' };
    upstream.reply(() => ({ status: 400, json: { error: { message: 'no', code: 100 } } }));
    await change(flow, { endpoint_uri: uri });
    await turn(api.database);
    expect(await openAlerts(api.database, admin)).toEqual([]);
    upstream.reply(() => 'hang up');
    await change(flow, { endpoint_uri: uri });
    await turn(api.database);
    expect(await openAlerts(api.database, admin)).toEqual([`url_set_by_key flow ${own.flow}`]);
  });
});

describe('the scope graph_manage', () => {
  const codeOf = (answer: Awaited<ReturnType<typeof change>>) => [
    answer.statusCode,
    answer.json().error?.message,
  ];

  test('is needed for each change; graph alone reads, and upstream hears of none', async () => {
    const key = await addFacadeKey(api.database, own.wabaId, ['graph']);
    for (const made of CHANGES.filter(({ isSending }) => !isSending)) {
      expect([made, codeOf(await change(made, {}, { key }))]).toEqual([
        made,
        [403, '(#10) The API key lacks the scope graph_manage.'],
      ]);
    }
    expect(upstream.calls).toEqual([]);
    const read = await api.app.inject({
      url: pathOf({ object: 'waba', edge: 'message_templates' }),
      headers: { authorization: `Bearer ${key}` },
    });
    expect(read.statusCode).toBe(200);
  });

  test('alone reads and changes the objects, and touches no message and no file', async () => {
    const key = await addFacadeKey(api.database, own.wabaId, ['graph_manage']);
    for (const made of CHANGES)
      expect([made, (await change(made, {}, { key })).statusCode]).toEqual([
        made,
        made.isSending ? 403 : 200,
      ]);
    const headers = { authorization: `Bearer ${key}` };
    const root = '/graph/v26.0';
    const send = { messaging_product: 'whatsapp', to: '12025550143', type: 'text', text: { body: 'x' } };
    for (const [method, url, payload] of [
      ['POST', `${root}/${own.number}/messages`, send],
      ['POST', `${root}/${own.number}/marketing_messages`, send],
      ['POST', `${root}/${own.number}/media`, {}],
      ['GET', `${root}/uploaded_media/${'1'.repeat(37)}`, undefined],
    ] as const) {
      const answer = await api.app.inject({ method, url, headers, ...(payload && { payload }) });
      expect([url, codeOf(answer)]).toEqual([url, [403, '(#10) The API key lacks the scope graph.']]);
    }
  });
});

describe('a call to a customer', () => {
  const CALL: Change = { method: 'POST', object: 'number', edge: 'calls' };
  const body = {
    messaging_product: 'whatsapp',
    to: '12025550143',
    action: 'connect',
    session: { sdp: 'v=0' },
  };

  test('needs the scope graph, reaches upstream as it is, and leaves an entry without its contents', async () => {
    upstream.reply(() => ({ json: { calls: [{ id: 'wacid.1' }] } }));
    const key = await addFacadeKey(api.database, own.wabaId, ['graph']);
    const answer = await change(CALL, body, { key });
    expect([answer.statusCode, answer.json()]).toEqual([200, { calls: [{ id: 'wacid.1' }] }]);
    expect(upstream.calls.map(({ method, url }) => [method, url])).toEqual([
      ['POST', `/v26.0/${own.number}/calls`],
    ]);
    expect(JSON.parse(upstream.calls[0]?.body ?? '')).toEqual(body);
    const entries = await entriesOf();
    expect(entries).toMatchObject([{ action: 'graph.changed', detail: { edge: 'calls', status: 200 } }]);
    expect(JSON.stringify(entries)).not.toContain('12025550143');
  });
});
