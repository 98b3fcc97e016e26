import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { contentProblem } from '../../../../dev/sandbox/graph/message-rules.ts';
import { sendProblem, sendWarnings } from '../../../../src/features/messages/send/check-send.ts';
import type { SendRequest } from '../../../../src/features/messages/send/send-request.ts';
import { upstreamPayload } from '../../../../src/features/messages/send/upstream-payload.ts';
import { storableProblem } from '../../../../src/platform/schema/problems.ts';
import { HOSTILE_JSON, membersOf, withMember } from '../../../support/hostile-messages.ts';
import { SEND_EXAMPLES, type SendExample } from '../../../support/send-examples.ts';

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

  // Objects whose members tenants or upstream choose.
  const OPEN = /(flow_action_payload\/data|values|notes)/;

  test.each(Object.keys(SEND_EXAMPLES))(
    '%s passes an unknown member of its content on, with a warning',
    (kind) => {
      const [, ...paths] = objectPaths(SEND_EXAMPLES[kind]);
      expect(paths.length).toBeGreaterThan(0);
      for (const path of paths.filter((each) => !OPEN.test(each))) {
        const request = changed(kind, `${path}/surprise`, { a: [1] }) as SendRequest;
        expect(sendProblem(request)).toBeNull();
        expect(sendWarnings(request).map(({ param }) => param)).toEqual([`${path}/surprise`]);
        expect(JSON.parse(upstreamPayload(request, '1'))).toMatchObject({
          [String(request.type)]: request[String(request.type)],
        });
      }
    },
  );

  test.each(Object.keys(SEND_EXAMPLES))('%s has no warnings as upstream documents it', (kind) => {
    expect(sendWarnings({ ...WHOM, ...SEND_EXAMPLES[kind] })).toEqual([]);
  });

  test.each(Object.keys(SEND_EXAMPLES))(
    '%s passes unknown members beside its content on, with warnings',
    (kind) => {
      const request = {
        ...changed(kind, 'surprise', { a: [1] }),
        context: { message_id: 'wamid.x', more: 1 },
      } as unknown as SendRequest;
      expect(sendProblem(request)).toBeNull();
      expect(sendWarnings(request).map(({ param }) => param)).toEqual(['surprise', 'context/more']);
      expect(JSON.parse(upstreamPayload(request, '1'))).toMatchObject({
        surprise: { a: [1] },
        context: { message_id: 'wamid.x', more: 1 },
      });
    },
  );
});

describe('what is wrong is named', () => {
  test.each([
    ['text', 'text/body', 7, 'text/body'],
    ['text', 'text/body', null, 'text/body'],
    ['text', 'text/body', undefined, 'text/body'],
    ['text', 'text', undefined, 'text'],
    ['text', 'text', [], 'text'],
    ['text', 'text/preview_url', 'yes', 'text/preview_url'],
    ['text', 'type', 'hologram', 'hologram'],
    ['text', 'type', 'interactive/list', 'type'],
    ['text', 'type', '__proto__', 'type'],
    ['text', 'type', 'constructor', 'constructor'],
    ['text', 'type', 'to', 'type'],
    ['text', 'type', 'status', 'type'],
    ['text', 'type', 'message_id', 'type'],
    ['text', 'type', 'extra', 'type'],
    ['text', 'type', 'x'.repeat(101), 'type'],
    ['text', 'type', 1, 'type'],
    ['text', 'status', 'read', 'status'],
    ['text', 'to', undefined, 'to'],
    ['text', 'to', 'US.10000143', 'to'],
    ['text', 'to', '+', 'to'],
    ['text', 'to', '()()', 'to'],
    ['text', 'to', '1'.repeat(18), 'to'],
    ['text', 'to', 12025550143, 'to'],
    ['text', 'recipient', '+12025550143', 'recipient'],
    ['text', 'phoneNumberId', undefined, 'phoneNumberId'],
    ['text', 'phoneNumberId', 1, 'phoneNumberId'],
    ['text', 'messaging_product', 'telegram', 'messaging_product'],
    ['text', 'recipient_type', 'group', 'to'],
    ['text', 'recipient_type', 'newsletter', 'recipient_type'],
    ['text', 'context', { message_id: '' }, 'context/message_id'],
    ['text', 'context', { message_id: 'x'.repeat(513) }, 'context/message_id'],
    ['text', 'context', {}, 'context/message_id'],
    ['text', 'biz_opaque_callback_data', 'x'.repeat(513), 'biz_opaque_callback_data'],
    ['image', 'image/link', 7, 'image/link'],
    ['location', 'location/latitude', {}, 'location/latitude'],
    ['location', 'location/longitude', undefined, 'location/longitude'],
    ['contacts', 'contacts', {}, 'contacts'],
    ['contacts', 'contacts/0/name/formatted_name', undefined, 'contacts/0/name/formatted_name'],
    ['reaction', 'reaction/message_id', undefined, 'reaction/message_id'],
    ['reaction', 'reaction/message_id', 'x'.repeat(513), 'reaction/message_id'],
    ['template', 'template/language', 'en_US', 'template/language'],
    ['template', 'template/components/1/parameters', {}, 'template/components/1/parameters'],
    ['button', 'interactive/type', undefined, 'interactive/type'],
    ['button', 'interactive', undefined, 'interactive'],
    ['button', 'interactive/action', undefined, 'interactive/action'],
    ['button', 'interactive/action/buttons/0/reply', 'yes', 'interactive/action/buttons/0/reply'],
    ['url_carousel', 'interactive/action/cards/0', 7, 'interactive/action/cards/0'],
    [
      'pix',
      'interactive/action/parameters/payment_settings/0/pix_dynamic_code',
      'code',
      'interactive/action/parameters/payment_settings/0/pix_dynamic_code',
    ],
    [
      'order_details',
      'interactive/action/parameters/total_amount/value',
      0.5,
      'interactive/action/parameters/total_amount/value',
    ],
  ])('%s with %s = %j names %s', (kind, path, value, expected) => {
    const problem = sendProblem(changed(kind, path, value));
    expect(problem?.param).toBe(expected);
    expect(problem?.message).toMatch(/\.$/);
  });

  test('a recipient has to be named, and may be named twice', () => {
    const { to: _, ...toNobody } = TEXT;
    expect(sendProblem(toNobody)).toEqual({ param: 'to', message: 'Give to or recipient.' });
    expect(sendProblem({ ...TEXT, recipient: 'US.10000143' })).toBeNull();
  });

  test('a message without a type is a text', () => {
    const { type: _, ...untyped } = TEXT as SendRequest;
    expect(sendProblem(untyped)).toBeNull();
    expect(JSON.parse(upstreamPayload(untyped, '1'))).toMatchObject({
      type: 'text',
      text: SEND_EXAMPLES.text?.text,
    });
    expect(param({ ...untyped, text: undefined, image: { id: '1' } })).toBe('text');
  });

  test('anything that is no send at all', () => {
    for (const body of [null, undefined, 1, 'text', [], true]) expect(sendProblem(body)).not.toBeNull();
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

describe('what can be stored and sent as it came', () => {
  test.each([
    ['a\0b', /U\+0000/],
    ['\ud800', /surrogate/],
    [JSON.parse('1e400'), /too large/],
    [JSON.parse('12345678901234567890'), /too large/],
    [-(2 ** 53), /too large/],
  ])('%j is refused by the path of its member', (value, message) => {
    const problem = storableProblem({ text: { body: ['x', value] } });
    expect([problem?.param, problem?.message]).toEqual(['text/body/1', expect.stringMatching(message)]);
  });

  test('nesting ends, and all that can be kept passes', () => {
    let deep: unknown = 1;
    for (let level = 0; level < 5_000; level += 1) deep = { deep };
    expect(storableProblem({ extra: { deep } })?.message).toMatch(/levels/);
    expect(storableProblem([2 ** 53 - 1, -0.1, 1e-7, '👋', null, true, {}])).toBeNull();
  });
});

describe('warnings', () => {
  test('a hostile message causes few of them, with short names', () => {
    const members = Object.fromEntries(
      Array.from({ length: 5_000 }, (_, n) => [`${n}-${'x'.repeat(500)}`, n]),
    );
    const text = { ...WHOM, type: 'text', text: { body: 'x' } };
    for (const request of [
      { ...text, text: { ...text.text, ...members } },
      { ...members, ...text },
    ]) {
      const warnings = sendWarnings(request);
      expect(warnings).toHaveLength(20);
      expect(Math.max(...warnings.map(({ param: { length } }) => length))).toBeLessThan(120);
    }
  });

  test('of a member that looks like one of ours name that', () => {
    const [warning] = sendWarnings({ ...TEXT, biz_opaque_callbackdata: 'x' } as unknown as SendRequest);
    expect(warning?.message).toMatch(/ Did you mean biz_opaque_callback_data\?$/);
  });

  test('names of built-in members are unknown like others', () => {
    const text = { body: 'x', constructor: 1, toString: 2, hasOwnProperty: 3 };
    expect(sendWarnings({ ...WHOM, type: 'text', text }).map(({ param }) => param)).toEqual([
      'text/constructor',
      'text/toString',
      'text/hasOwnProperty',
    ]);
  });
});

describe('hostile values', () => {
  test.each(Object.keys(SEND_EXAMPLES))('at any place of %s are refused or passed on as they are', (kind) => {
    const example: SendExample = SEND_EXAMPLES[kind] ?? { type: 'text' };
    const { type } = example;
    for (const path of membersOf(example[type], [type])) {
      for (const json of HOSTILE_JSON) {
        const message = JSON.parse(withMember(example, path, json)) as Record<string, unknown>;
        const request: SendRequest = { ...WHOM, ...message };
        if (storableProblem(request) !== null || sendProblem(request) !== null) continue;
        expect(sendWarnings(request).length).toBeLessThanOrEqual(20);
        const sent = JSON.parse(upstreamPayload(request, '1')) as Record<string, unknown>;
        expect(sent[type]).toEqual(request[type]);
        contentProblem(sent);
      }
    }
  });
});

test('a member that makes a send another call, or names another token, is never passed on', () => {
  const names = `access_token application_id appsecret_proof batch callback debug fields format id ids include_headers
    Method metadata pretty relative_url return_ssl_resources suppress_http_code webhook_configuration
    override_callback_uri status Message_ID typing_indicator`;
  for (const name of names.split(/\s+/)) {
    expect(param({ ...TEXT, [name]: 'x' })).toBe(name);
    expect(param({ ...TEXT, extra: { [name]: 'x' } })).toBe(`extra/${name}`);
  }
});

test('a type cannot name a member that makes a send another call', () => {
  for (const type of ['access_token', 'method', 'batch', 'fields', 'status']) {
    expect(param({ ...WHOM, type, [type]: {} })).toBe('type');
  }
});

describe('extra', () => {
  test('adds members beside the content, untouched', () => {
    const request = { ...TEXT, extra: { campaign: { id: ['c', { a: null }] } } } as unknown as SendRequest;
    expect(sendProblem(request)).toBeNull();
    expect(sendWarnings(request)).toEqual([]);
    expect(JSON.parse(upstreamPayload(request, '1'))).toMatchObject({
      text: { body: 'Hello 👋', preview_url: true },
      campaign: { id: ['c', { a: null }] },
    });
  });

  test.each([
    [{ text: { future: 1 } }, 'extra/text'],
    [{ type: 'image' }, 'extra/type'],
    [{ to: '+49' }, 'extra/to'],
    [{ recipient: 'US.1' }, 'extra/recipient'],
    [{ messaging_product: 'x' }, 'extra/messaging_product'],
    [{ biz_opaque_callback_data: 'x' }, 'extra/biz_opaque_callback_data'],
    [{ status: 'read', message_id: 'wamid.x' }, 'extra/status'],
    [{ typing_indicator: {} }, 'extra/typing_indicator'],
    [{ context: { message_id: 'w' } }, 'extra/context'],
    [{ method: 'delete' }, 'extra/method'],
    [{ campaign: 1, Access_Token: 'EAAother' }, 'extra/Access_Token'],
    [{ fields: 'x' }, 'extra/fields'],
    [{ webhook_configuration: {} }, 'extra/webhook_configuration'],
  ])('%j can replace nothing', (extra, expected) => {
    expect(param({ ...TEXT, extra })).toBe(expected);
  });
});
