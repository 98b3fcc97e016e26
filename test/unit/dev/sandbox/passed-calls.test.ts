import { expect, test } from 'vitest';
import { ALLOWED_CALLS, type OwnObject } from '../../../../src/api/graph/allowed-calls.ts';
import { graph, postJson, startSandbox } from './sandbox-harness.ts';

/** What the facade passes on is what a developer tries first: the sandbox serves all of it. */

const NUMBER = '800000000000111';
const WABA = '900000000000101';

async function world() {
  const { url } = await startSandbox();
  const at = (path: string) => `${url}/v26.0/${path}`;
  const get = async (path: string) => await (await graph(at(path))).json();
  const post = async (path: string, body: object) => await (await postJson(at(path), body)).json();
  const remove = async (path: string, body?: object) => {
    const content =
      body === undefined
        ? {}
        : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
    return await (await graph(at(path), { method: 'DELETE', ...content })).json();
  };
  return { at, get, post, remove };
}

/** What a call needs to be understood. */
const BODIES: Readonly<Record<string, object>> = {
  'POST message_templates': { name: 'a', language: 'en', category: 'UTILITY', components: [] },
  'POST flows': { name: 'Feedback', categories: ['OTHER'] },
  'POST message_qrdls': { prefilled_message: 'Hi', code: 'ABC', generate_qr_image: 'PNG' },
  'POST calls': { messaging_product: 'whatsapp', to: '12025550143', action: 'terminate', call_id: 'wacid.1' },
  'POST groups': { messaging_product: 'whatsapp', subject: 'Trip to Lisbon' },
  'POST username': { username: 'fixture.store' },
  'POST block_users': { messaging_product: 'whatsapp', block_users: [{ user: '12025550143' }] },
  'DELETE block_users': { messaging_product: 'whatsapp', block_users: [{ user: '12025550143' }] },
};

test('every call that the facade passes on has an answer that is no error', async () => {
  const { at, post } = await world();
  const ids: Record<OwnObject, () => Promise<string>> = {
    waba: async () => WABA,
    number: async () => NUMBER,
    template: async () =>
      (await post(`${WABA}/message_templates`, BODIES['POST message_templates'] ?? {})).id,
    flow: async () => (await post(`${WABA}/flows`, BODIES['POST flows'] ?? {})).id,
  };
  let calls = 0;
  const failed: string[] = [];
  for (const object of Object.keys(ALLOWED_CALLS) as OwnObject[]) {
    for (const [edge, { methods }] of Object.entries(ALLOWED_CALLS[object])) {
      const id = await ids[object]();
      for (const method of methods) {
        // A code that is there.
        if (edge.startsWith('message_qrdls')) {
          await post(`${NUMBER}/message_qrdls`, BODIES['POST message_qrdls'] ?? {});
        }
        const query = method === 'DELETE' && edge === 'message_templates' ? '?name=a' : '';
        const codeQuery = method === 'DELETE' && edge === 'message_qrdls' ? '?code=ABC' : '';
        const path = [id, ...(edge === '' ? [] : [edge.replace('*', 'ABC')])].join('/');
        if (query !== '') await ids.template();
        const body = JSON.stringify(BODIES[`${method} ${edge}`] ?? {});
        const content = method === 'GET' ? {} : { headers: { 'content-type': 'application/json' }, body };
        const answer = await graph(at(`${path}${query}${codeQuery}`), { method, ...content });
        const text = await answer.text();
        if (answer.status !== 200 || text.includes('"error"')) failed.push(`${method} ${path}: ${text}`);
        calls += 1;
      }
    }
  }
  expect(failed).toEqual([]);
  expect(calls).toBeGreaterThan(30);
});

test('a profile, blocked users and QR codes are what was set', async () => {
  const { get, post, remove } = await world();
  await post(`${NUMBER}/whatsapp_business_profile`, { messaging_product: 'whatsapp', about: 'Open' });
  expect(await get(`${NUMBER}/whatsapp_business_profile?fields=about`)).toEqual({
    data: [{ about: 'Open' }],
  });
  const users = BODIES['POST block_users'] ?? {};
  const user = { wa_id: '12025550143', user_id: expect.stringMatching(/^US\.\d{20}$/) };
  expect(await post(`${NUMBER}/block_users`, users)).toEqual({
    messaging_product: 'whatsapp',
    block_users: { added_users: [{ input: '12025550143', ...user }] },
  });
  expect((await get(`${NUMBER}/block_users`)).data).toEqual([
    { messaging_product: 'whatsapp', input: '12025550143', ...user },
  ]);
  await remove(`${NUMBER}/block_users`, users);
  expect((await get(`${NUMBER}/block_users`)).data).toEqual([]);
  const code = await post(`${NUMBER}/message_qrdls`, { prefilled_message: 'Hi' });
  expect(await get(`${NUMBER}/message_qrdls/${code.code}`)).toEqual({ data: [code] });
  expect((await remove(`${NUMBER}/message_qrdls/${code.code}`)).success).toBe(true);
  expect((await get(`${NUMBER}/message_qrdls/${code.code}`)).error.code).toBe(100);
});

test('templates are made, counted, changed and deleted; a flow is published', async () => {
  const { get, post, remove } = await world();
  const list = `${WABA}/message_templates`;
  const before = await get(`${list}?limit=1&summary=total_count,message_template_limit`);
  expect(before.summary).toEqual({ total_count: 6, message_template_limit: 6_000 });
  expect((await get(list)).summary).toBeUndefined();
  const { id, status } = await post(list, { name: 'mug_sale', language: 'en_US', category: 'MARKETING' });
  expect([status, await get(`${id}?fields=status`)]).toEqual(['PENDING', { id, status: 'APPROVED' }]);
  expect((await post(id, { category: 'UTILITY' })).success).toBe(true);
  expect(await get(`${id}?fields=name,category`)).toEqual({ id, name: 'mug_sale', category: 'UTILITY' });
  expect((await get('900000000000202/message_templates')).data).toHaveLength(6);
  expect((await remove(`${list}?name=mug_sale`)).success).toBe(true);
  expect((await get(list)).data).toHaveLength(6);
  expect((await post(list, { name: 'x' })).error.code).toBe(100);
  const flow = await post(`${WABA}/flows`, { name: 'Feedback', categories: ['OTHER'] });
  await post(`${flow.id}/publish`, {});
  expect(await get(`${flow.id}?fields=status`)).toEqual({ id: flow.id, status: 'PUBLISHED' });
});

test('what the sandbox does not serve has the form of the Graph API', async () => {
  const { at } = await world();
  const answer = await graph(at(`${NUMBER}/something/new`), { method: 'DELETE' });
  expect([answer.status, (await answer.json()).error]).toEqual([
    400,
    expect.objectContaining({ code: 100, type: 'GraphMethodException', fbtrace_id: expect.any(String) }),
  ]);
});
