import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { SEND_EXAMPLES } from '../../../support/send-examples.ts';
import { APP_SECRET, graph, postJson, startSandbox, until } from './sandbox-harness.ts';

const GRAPH_FIXTURES = new URL('../../../fixtures/upstream/graph/', import.meta.url);
const TEXT = { messaging_product: 'whatsapp', to: '+12025550143', type: 'text', text: { body: 'hi' } };
const PATH = '/v26.0/800000000000111/messages';

function statusOf(bytes: Buffer) {
  return JSON.parse(bytes.toString()).entry[0].changes[0].value.statuses[0];
}

/** The interactive example of this name with a member of its action set, by its path. */
function changed(name: string, path: string, value: unknown): Record<string, unknown> {
  const message = structuredClone(SEND_EXAMPLES[name]) as unknown as { interactive: { action: unknown } };
  const names = path.split('/');
  const last = names.pop() ?? '';
  let at = message.interactive.action as Record<string, unknown>;
  for (const each of names) at = at[each] as Record<string, unknown>;
  at[last] = value;
  return message;
}

function manyCards(count: number): unknown[] {
  const { interactive } = SEND_EXAMPLES.url_carousel as unknown as {
    interactive: { action: { cards: object[] } };
  };
  return Array.from({ length: count }, (_, index) => ({ ...interactive.action.cards[0], card_index: index }));
}

describe('send', () => {
  test('answers as documented, with a fresh id of the real structure', async () => {
    const { url } = await startSandbox();
    const expected = JSON.parse(await readFile(new URL('send_200.json', GRAPH_FIXTURES), 'utf8')).body;
    const response = await postJson(`${url}${PATH}`, TEXT);
    expect(response.status).toBe(200);
    const body = await response.json();
    expect(body).toEqual({ ...expected, messages: [{ id: expect.any(String) }] });
    const [id, fixtureId] = [body.messages[0].id, expected.messages[0].id].map((wamid: string) =>
      Buffer.from(wamid.slice('wamid.'.length), 'base64'),
    );
    expect(id?.length).toBe(fixtureId?.length);
    expect(id?.subarray(0, 20)).toEqual(fixtureId?.subarray(0, 20));
    expect(id?.toString('latin1', 20, 38)).toMatch(/^[0-9A-F]{18}$/);
    const again = await (await postJson(`${url}${PATH}`, TEXT)).json();
    expect(again.messages[0].id).not.toBe(body.messages[0].id);
  });

  test.each(Object.keys(SEND_EXAMPLES))('takes the kind %s', async (kind) => {
    const { url } = await startSandbox();
    const response = await postJson(`${url}${PATH}`, { ...TEXT, text: undefined, ...SEND_EXAMPLES[kind] });
    expect([response.status, await response.json()]).toMatchObject([200, { messages: [{}] }]);
  });

  test.each([
    ['of a name that the account does not have', 'unheard_of', 'en_US'],
    ['in another language', 'summer_offer', 'de'],
    ['that was rejected', 'winter_offer', 'en_US'],
  ])('with a template %s is refused as upstream does', async (_, name, code) => {
    const { url } = await startSandbox();
    const message = { ...TEXT, type: 'template', text: undefined, template: { name, language: { code } } };
    const response = await postJson(`${url}${PATH}`, message);
    const { body, status } = JSON.parse(await readFile(new URL('err_132001.json', GRAPH_FIXTURES), 'utf8'));
    const details = `template name (${name}) does not exist in ${code}`;
    expect([response.status, (await response.json()).error]).toEqual([
      status,
      { ...body.error, error_data: { ...body.error.error_data, details }, fbtrace_id: expect.any(String) },
    ]);
  });

  test('is followed by sent, delivered and read, in this order and apart, each signed over its bytes', async () => {
    const { url, ingress } = await startSandbox({ statusDelayMs: 40 });
    const send = { ...TEXT, biz_opaque_callback_data: 'order 7 ✓' };
    const { messages } = await (await postJson(`${url}${PATH}`, send)).json();
    await until(() => ingress.webhooks.length === 3);
    expect(ingress.webhooks.map(({ bytes }) => statusOf(bytes).status)).toEqual([
      'sent',
      'delivered',
      'read',
    ]);
    for (const { bytes, headers } of ingress.webhooks) {
      const expected = createHmac('sha256', APP_SECRET).update(bytes).digest('hex');
      expect(headers['x-hub-signature-256']).toBe(`sha256=${expected}`);
      expect(statusOf(bytes)).toMatchObject({
        id: messages[0].id,
        recipient_id: '12025550143',
        biz_opaque_callback_data: 'order 7 ✓',
      });
      expect(bytes.toString()).toContain('\\u2713');
    }
    const [first, , third] = ingress.webhooks;
    expect((third?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThan(70);
  });

  test('repeats a status until the ingress answers 200, and only then goes on', async () => {
    const { url, ingress } = await startSandbox({ statusDelayMs: 1 });
    ingress.statuses.push(503);
    await postJson(`${url}${PATH}`, TEXT);
    await until(() => ingress.webhooks.length === 4);
    expect(ingress.webhooks.map(({ bytes }) => statusOf(bytes).status)).toEqual([
      ...['sent', 'sent', 'delivered', 'read'],
    ]);
    expect(ingress.webhooks[0]?.bytes).toEqual(ingress.webhooks[1]?.bytes);
  });

  test('to a business-scoped user id answers and reports without a phone number', async () => {
    const { url, ingress } = await startSandbox();
    const { to: _to, ...rest } = TEXT;
    const body = await (await postJson(`${url}${PATH}`, { ...rest, recipient: 'US.1000143' })).json();
    expect(body.contacts).toEqual([{ input: 'US.1000143', user_id: 'US.1000143' }]);
    await until(() => ingress.webhooks.length > 0);
    const status = statusOf(ingress.webhooks[0]?.bytes ?? Buffer.alloc(0));
    expect(status).toMatchObject({ recipient_user_id: 'US.1000143' });
    expect(status).not.toHaveProperty('recipient_id');
  });

  test('of a read receipt succeeds and reports nothing', async () => {
    const { url, ingress } = await startSandbox({ statusDelayMs: 1 });
    const receipt = { messaging_product: 'whatsapp', status: 'read', message_id: 'wamid.x' };
    expect(await (await postJson(`${url}${PATH}`, receipt)).json()).toEqual({ success: true });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(ingress.webhooks).toHaveLength(0);
  });

  test.each([
    ['no messaging_product', { ...TEXT, messaging_product: undefined }, 100],
    ['no recipient', { ...TEXT, to: undefined }, 131008],
    ['a recipient that is no text', { ...TEXT, to: 12025550143 }, 131008],
    ['no content', { ...TEXT, text: undefined }, 131008],
    ['an empty text', { ...TEXT, text: { body: '' } }, 131008],
    ['a text that is too long', { ...TEXT, text: { body: 'x'.repeat(4097) } }, 100],
    ['a type of another world', { ...TEXT, type: 'hologram' }, 131009],
    ['an inherited name as type', { ...TEXT, type: 'constructor' }, 131009],
    ['an unknown member', { ...TEXT, text: { body: 'hi', tone: 'glad' } }, 100],
    [
      'a title that is too long',
      { ...TEXT, ...changed('button', 'buttons/0/reply/title', 'x'.repeat(21)) },
      100,
    ],
    ['no button', { ...TEXT, ...changed('button', 'buttons', []) }, 131008],
    ['eleven cards', { ...TEXT, ...changed('url_carousel', 'cards', manyCards(11)) }, 100],
    ['one card', { ...TEXT, ...changed('url_carousel', 'cards', manyCards(1)) }, 131008],
    ['an action of another message', { ...TEXT, ...changed('voice_call', 'name', 'flow') }, 131009],
    ['another currency', { ...TEXT, ...changed('pix', 'parameters/currency', 'USD') }, 131009],
    ['a total that is wrong', { ...TEXT, ...changed('pix', 'parameters/total_amount/value', 1) }, 131009],
    [
      'a reference that is too long',
      { ...TEXT, ...changed('pix', 'parameters/reference_id', 'x'.repeat(36)) },
      100,
    ],
    [
      'a file and a link',
      { ...TEXT, type: 'image', image: { id: '1', link: 'https://shop.example' } },
      131008,
    ],
    ['callback data that are too long', { ...TEXT, biz_opaque_callback_data: 'x'.repeat(513) }, 131009],
    ['null', null, 100],
    ['a list', [], 100],
  ])('refuses %s as the platform does', async (_name, body, code) => {
    const { url, ingress } = await startSandbox({ statusDelayMs: 1 });
    const response = await postJson(`${url}${PATH}`, body);
    expect(response.status).toBe(400);
    expect((await response.json()).error.code).toBe(code);
    expect(ingress.webhooks).toHaveLength(0);
  });

  test('answers broken JSON and unknown phone numbers in the form of the Graph API', async () => {
    const { url } = await startSandbox();
    const headers = { 'content-type': 'application/json' };
    const broken = await graph(`${url}${PATH}`, { method: 'POST', headers, body: '{' });
    expect(broken.status).toBe(400);
    expect((await broken.json()).error.code).toBe(100);
    const unknown = await postJson(`${url}/v26.0/800000000000999/messages`, TEXT);
    expect((await unknown.json()).error).toMatchObject({ code: 100, error_subcode: 33 });
  });

  test('stops its reports when the server stops', async () => {
    const { url, ingress, close } = await startSandbox({ statusDelayMs: 50 });
    await postJson(`${url}${PATH}`, TEXT);
    await close();
    await new Promise((resolve) => setTimeout(resolve, 120));
    expect(ingress.webhooks).toHaveLength(0);
  });
});
