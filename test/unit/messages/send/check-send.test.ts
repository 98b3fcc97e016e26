import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { sendProblem } from '../../../../src/api/messages/send/send-message.ts';
import { upstreamPayload } from '../../../../src/api/messages/send/upstream-payload.ts';
import { SEND_EXAMPLES } from '../../../support/send-examples.ts';

const WHOM = { phoneNumberId: '800000000000111', to: '+12025550143' };
const TEXT = { ...WHOM, ...SEND_EXAMPLES.text };

/** An example with one member set, by its path; undefined removes it. */
function changed(kind: string, path: string, value: unknown): Record<string, unknown> {
  const body = structuredClone({ ...WHOM, ...SEND_EXAMPLES[kind] }) as Record<string, unknown>;
  const names = path.split('/');
  const last = names.pop() ?? '';
  let at = body;
  for (const name of names) at = at[name] as Record<string, unknown>;
  if (value === undefined) delete at[last];
  else at[last] = value;
  return body;
}

const param = (body: unknown) => sendProblem(body)?.param ?? null;

/** Paths of all objects in a value. */
function objectPaths(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const own = Array.isArray(value) ? [] : [path];
  return [
    ...own,
    ...Object.entries(value).flatMap(([name, member]) =>
      objectPaths(member, path === '' ? name : `${path}/${name}`),
    ),
  ];
}

describe('every kind of message', () => {
  test.each(Object.keys(SEND_EXAMPLES))('%s can be sent, to a phone and to a user id', (kind) => {
    expect(sendProblem({ ...WHOM, ...SEND_EXAMPLES[kind] })).toBeNull();
    const byId = { phoneNumberId: '1', recipient: 'US.10000143', ...SEND_EXAMPLES[kind] };
    expect(sendProblem(byId)).toBeNull();
    expect(sendProblem({ ...byId, recipient: 'US.ENT.abc9' })).toBeNull();
  });

  test.each(Object.keys(SEND_EXAMPLES))('%s is sent exactly as it is given', (kind) => {
    const request = { ...WHOM, ...SEND_EXAMPLES[kind], context: { message_id: 'wamid.x' } };
    expect(JSON.parse(upstreamPayload(request, '17'))).toEqual({
      messaging_product: 'whatsapp',
      recipient_type: 'individual',
      to: WHOM.to,
      context: { message_id: 'wamid.x' },
      biz_opaque_callback_data: 'heliograph:17',
      ...SEND_EXAMPLES[kind],
    });
  });

  // Objects whose members tenants choose, or that are checked by others.
  const OPEN = /(flow_action_payload\/data|values|notes|cards\/\d+\/components)/;

  test.each(Object.keys(SEND_EXAMPLES))('%s refuses an unknown member anywhere, by its name', (kind) => {
    for (const path of objectPaths(SEND_EXAMPLES[kind])) {
      if (OPEN.test(path)) continue;
      const at = path === '' ? 'surprise' : `${path}/surprise`;
      const found = param(changed(kind, at, 1));
      // One of several forms of payment cannot say which form was meant.
      expect(at.startsWith(found ?? 'nothing') && found !== '').toBe(true);
      if (!at.includes('payment_settings')) expect(found).toBe(at);
    }
  });
});

describe('what is wrong is named', () => {
  test.each([
    ['text', 'text/body', '', 'text/body'],
    ['text', 'text/body', 'x'.repeat(4097), 'text/body'],
    ['text', 'text/body', 7, 'text/body'],
    ['text', 'text/body', null, 'text/body'],
    ['text', 'text/body', undefined, 'text/body'],
    ['text', 'text', undefined, 'text'],
    ['text', 'text', [], 'text'],
    ['text', 'text/body', 'a\0b', 'text/body'],
    ['text', 'text/body', '\ud800', 'text/body'],
    ['text', 'text/preview_url', 'yes', 'text/preview_url'],
    ['text', 'type', 'hologram', 'type'],
    ['text', 'type', undefined, 'type'],
    ['text', 'type', 'interactive/list', 'type'],
    ['text', 'type', '__proto__', 'type'],
    ['text', 'to', undefined, 'to'],
    ['text', 'to', 'US.10000143', 'to'],
    ['text', 'to', '+', 'to'],
    ['text', 'to', '()()', 'to'],
    ['text', 'to', '1'.repeat(18), 'to'],
    ['text', 'to', 12025550143, 'to'],
    ['text', 'recipient', 'US.1', 'recipient'],
    ['text', 'phoneNumberId', undefined, 'phoneNumberId'],
    ['text', 'phoneNumberId', 1, 'phoneNumberId'],
    ['text', 'messaging_product', 'telegram', 'messaging_product'],
    ['text', 'recipient_type', 'group', 'recipient_type'],
    ['text', 'context', { message_id: '' }, 'context/message_id'],
    ['text', 'context', {}, 'context/message_id'],
    ['text', 'biz_opaque_callback_data', 'x'.repeat(513), 'biz_opaque_callback_data'],
    ['text', 'image', { id: '1' }, 'image'],
    ['image', 'image/link', undefined, 'image/id'],
    ['image', 'image/id', '5', 'image/link'],
    ['image', 'image/link', 'ftp://x', 'image/link'],
    ['image', 'image/caption', 'x'.repeat(1025), 'image/caption'],
    ['audio', 'audio/caption', 'no', 'audio/caption'],
    ['sticker', 'sticker/caption', 'no', 'sticker/caption'],
    ['location', 'location/latitude', 91, 'location/latitude'],
    ['location', 'location/longitude', undefined, 'location/longitude'],
    ['contacts', 'contacts', [], 'contacts'],
    ['contacts', 'contacts/0/name/formatted_name', undefined, 'contacts/0/name/formatted_name'],
    ['reaction', 'reaction/message_id', undefined, 'reaction/message_id'],
    ['template', 'template/name', 'Order Ready', 'template/name'],
    ['template', 'template/language/code', 'english', 'template/language/code'],
    [
      'template',
      'template/components/1/parameters/0/text',
      undefined,
      'template/components/1/parameters/0/text',
    ],
    [
      'template',
      'template/components/0/parameters/0/image/id',
      '5',
      'template/components/0/parameters/0/image/link',
    ],
    ['button', 'interactive/type', 'hologram', 'interactive/type'],
    ['button', 'interactive', undefined, 'interactive'],
    ['button', 'interactive/body', undefined, 'interactive/body'],
    ['button', 'interactive/body/text', 'x'.repeat(1025), 'interactive/body/text'],
    ['button', 'interactive/footer/text', 'x'.repeat(61), 'interactive/footer/text'],
    ['button', 'interactive/header/image/link', 'https://x.example', 'interactive/header/image/link'],
    ['button', 'interactive/header/type', 'video', 'interactive/header/video'],
    ['button', 'interactive/header/text', 'also', 'interactive/header/text'],
    [
      'button',
      'interactive/action/buttons/0/reply/title',
      'x'.repeat(21),
      'interactive/action/buttons/0/reply/title',
    ],
    ['list', 'interactive/header/type', 'image', 'interactive/header/type'],
    ['list', 'interactive/action/button', 'x'.repeat(21), 'interactive/action/button'],
    ['product', 'interactive/header', { type: 'text', text: 'no' }, 'interactive/header'],
    ['product_list', 'interactive/header', undefined, 'interactive/header'],
    ['flow', 'interactive/action/parameters/flow_name', 'also', 'interactive/action/parameters/flow_name'],
    ['cta_url', 'interactive/action/parameters/url', 'shop', 'interactive/action/parameters/url'],
    ['cta_url', 'interactive/action/name', 'flow', 'interactive/action/name'],
    [
      'order_details',
      'interactive/action/parameters/reference_id',
      'a b',
      'interactive/action/parameters/reference_id',
    ],
    [
      'order_details',
      'interactive/action/parameters/total_amount/value',
      5_001,
      'interactive/action/parameters/total_amount/value',
    ],
    [
      'order_details',
      'interactive/action/parameters/order/items/0/quantity',
      3,
      'interactive/action/parameters/order/subtotal/value',
    ],
    [
      'order_details',
      'interactive/action/parameters/order/tax/offset',
      10,
      'interactive/action/parameters/order/tax/offset',
    ],
    [
      'order_status',
      'interactive/action/parameters/order/status',
      'lost',
      'interactive/action/parameters/order/status',
    ],
  ])('%s with %s = %j names %s', (kind, path, value, expected) => {
    const problem = sendProblem(changed(kind, path, value));
    expect(problem?.param).toBe(expected);
    expect(problem?.message).toMatch(/\.$/);
  });

  test('what must not come twice, or too often in all', () => {
    const twice = [1, 2].map(() => ({ type: 'reply', reply: { id: 'a', title: 'A' } }));
    expect(param(changed('button', 'interactive/action/buttons', twice))).toBe(
      'interactive/action/buttons/1/reply/id',
    );
    const rows = (prefix: string) =>
      Array.from({ length: 6 }, (_, n) => ({ id: `${prefix}${n}`, title: String(n) }));
    const sections = [
      { title: 'a', rows: rows('a') },
      { title: 'b', rows: rows('b') },
    ];
    expect(param(changed('list', 'interactive/action/sections', sections))).toBe(
      'interactive/action/sections',
    );
    const untitled = [{ rows: rows('a').slice(0, 1) }, { title: 'b', rows: rows('b').slice(0, 1) }];
    expect(param(changed('list', 'interactive/action/sections', untitled))).toBe(
      'interactive/action/sections/0/title',
    );
  });

  test('anything that is no send at all', () => {
    for (const body of [null, undefined, 1, 'text', [], true]) expect(sendProblem(body)).not.toBeNull();
    let deep: unknown = 1;
    for (let level = 0; level < 5_000; level += 1) deep = { deep };
    expect(sendProblem({ ...TEXT, extra: { deep } })?.message).toMatch(/levels/);
  });

  test('whatever is sent is answered, never thrown', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(...Object.keys(SEND_EXAMPLES)), (value, kind) => {
        const example = SEND_EXAMPLES[kind] as Record<string, unknown>;
        const { type } = example as { type: string };
        sendProblem(value);
        sendProblem({ ...WHOM, type, [type]: value });
        sendProblem({ ...WHOM, ...example, extra: value });
        const problem = sendProblem({ ...WHOM, ...example, context: value });
        expect(problem === null || problem.param.startsWith('context')).toBe(true);
      }),
    );
  });
});

describe('extra', () => {
  test('adds members at any depth, untouched', () => {
    const request = { ...TEXT, extra: { text: { future: [1, { a: null }] }, campaign: { id: 'c' } } };
    expect(sendProblem(request)).toBeNull();
    expect(JSON.parse(upstreamPayload(request as never, '1'))).toMatchObject({
      text: { body: 'Hello 👋', preview_url: true, future: [1, { a: null }] },
      campaign: { id: 'c' },
    });
  });

  test.each([
    [{ text: { body: 'other' } }, 'extra/text/body'],
    [{ text: 'other' }, 'extra/text'],
    [{ type: 'image' }, 'extra/type'],
    [{ to: '+49' }, 'extra/to'],
    [{ recipient: 'US.1' }, 'extra/recipient'],
    [{ messaging_product: 'x' }, 'extra/messaging_product'],
    [{ biz_opaque_callback_data: 'x' }, 'extra/biz_opaque_callback_data'],
    [{ status: 'read', message_id: 'wamid.x' }, 'extra/status'],
    [{ typing_indicator: {} }, 'extra/typing_indicator'],
    [{ context: { message_id: 'w' } }, 'extra/context'],
  ])('%j can replace nothing', (extra, expected) => {
    expect(param({ ...TEXT, extra })).toBe(expected);
  });

  test('carries types that upstream has added, but none that are known and checked', () => {
    expect(sendProblem({ ...WHOM, extra: { type: 'poll', poll: { a: 1 } } })).toBeNull();
    expect(param({ ...WHOM, extra: { type: 'text', text: { body: '' } } })).toBe('type');
    const carousel = { ...WHOM, type: 'interactive', extra: { interactive: { type: 'carousel' } } };
    expect(sendProblem(carousel)).toBeNull();
    expect(param({ ...carousel, extra: { interactive: { type: 'list' } } })).toBe('interactive');
    const sent = JSON.parse(upstreamPayload(carousel as never, '1'));
    expect(sent).toMatchObject({ type: 'interactive', interactive: { type: 'carousel' } });
  });
});
