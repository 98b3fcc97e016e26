import { readFile } from 'node:fs/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DEMO_PHONE_NUMBERS } from '../../../../dev/sandbox/demo-accounts.ts';
import { buildInboundMessage } from '../../../../dev/sandbox/payloads/inbound-message.ts';
import type { InboundRequest } from '../../../../dev/sandbox/payloads/inbound-request.ts';
import { buildMessageStatus } from '../../../../dev/sandbox/payloads/message-status.ts';
import { buildPaymentStatus } from '../../../../dev/sandbox/payloads/payment-status.ts';
import { createRandomSource, inboundWamid, outboundWamid } from '../../../../dev/sandbox/payloads/sources.ts';
import { serializeWebhookBody } from '../../../../dev/sandbox/payloads/webhook-body.ts';
import { codePoint } from '../../../support/any-text.ts';

const FIXTURES = new URL('../../../fixtures/upstream/', import.meta.url);
const MEDIA = {
  id: '600000000000001',
  mimeType: 'image/jpeg',
  sha256Base64: 'AAAA',
  url: 'https://example.com/',
};

function phone(id: string) {
  const found = DEMO_PHONE_NUMBERS.find(({ phoneNumberId }) => phoneNumberId === id);
  if (found === undefined) {
    throw new Error(`There is no demo number ${id}.`);
  }
  return found;
}

const PHONE = phone('800000000000111');
const INDIAN_PHONE = phone('800000000000221');

/** The names and types of all members; values do not matter, and lists are judged by their first item. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.slice(0, 1).map(shapeOf);
  }
  if (typeof value !== 'object' || value === null) {
    return typeof value;
  }
  const names = Object.keys(value).sort();
  return Object.fromEntries(names.map((name) => [name, shapeOf((value as Record<string, unknown>)[name])]));
}

type Value = { contacts?: unknown; messages?: { from_user_id?: string }[] };

function valueOfBody({ body }: { body: unknown }): Value {
  return (body as { entry: { changes: { value: Value }[] }[] }).entry[0]?.changes[0]?.value ?? {};
}

async function fixture(name: string): Promise<unknown> {
  return JSON.parse(await readFile(new URL(`${name}.json`, FIXTURES), 'utf8'));
}

const MESSAGES: [fixture: string, request: InboundRequest][] = [
  ['in_text', { type: 'text' }],
  ['in_text_reply_context', { type: 'text', replyTo: 'wamid.x' }],
  ['in_text_forwarded', { type: 'text', forwarded: true }],
  ['in_image_caption_url', { type: 'image', caption: 'Front door' }],
  ['in_video', { type: 'video', caption: 'Timelapse' }],
  ['in_audio_voice', { type: 'audio' }],
  ['in_document', { type: 'document', caption: 'my receipt' }],
  ['in_sticker_animated', { type: 'sticker', animated: true }],
  ['in_location_named', { type: 'location' }],
  ['in_contacts_single', { type: 'contacts' }],
  ['in_interactive_button_reply', { type: 'interactive' }],
  ['in_interactive_list_reply', { type: 'interactive', interactiveType: 'list_reply' }],
  ['in_interactive_nfm_reply_flow', { type: 'interactive', interactiveType: 'nfm_reply' }],
  ['in_button_quick_reply', { type: 'button' }],
  ['in_reaction', { type: 'reaction' }],
  ['in_reaction_removed_absent', { type: 'reaction', emoji: '' }],
  ['in_order', { type: 'order' }],
  ['in_system_user_changed_number', { type: 'system' }],
  ['in_request_welcome', { type: 'request_welcome' }],
  ['in_unsupported_typed', { type: 'unsupported' }],
  ['in_edit_text', { type: 'edit' }],
  ['in_revoke', { type: 'revoke' }],
];

describe('inbound messages', () => {
  test.each([
    ...MESSAGES.map(([name, request]): [string, InboundRequest] => [name, { ...request, userId: '' }]),
    ['in_bsuid_with_phone', { type: 'text' }] as [string, InboundRequest],
    ['in_system_user_changed_number_bsuid', { type: 'system' }] as [string, InboundRequest],
  ])('have the members and types of the fixture %s', async (name, request) => {
    const media = ['image', 'video', 'audio', 'document', 'sticker'].includes(request.type)
      ? MEDIA
      : undefined;
    const { body } = buildInboundMessage(request, PHONE, media);
    expect(shapeOf(body)).toEqual(shapeOf(await fixture(name)));
  });

  test('name one customer by one user id at one business, in messages, statuses and payments alike', () => {
    const message = valueOfBody(buildInboundMessage({ type: 'text', from: '12025550150' }, PHONE));
    const userId = message.messages?.[0]?.from_user_id;
    expect(userId).toMatch(/^US\.\d{20}$/);
    const contact = { wa_id: '12025550150', user_id: userId };
    expect(message.contacts).toEqual([{ profile: { name: 'Asha Tester' }, ...contact }]);
    const status = { id: 'wamid.x', status: 'read', recipientId: '12025550150' };
    expect(valueOfBody(buildMessageStatus(status, PHONE)).contacts).toEqual([
      { profile: { name: 'Farah Fixture' }, ...contact },
    ]);
    const paid = buildPaymentStatus({ status: 'captured', from: '12025550150' }, PHONE);
    expect(valueOfBody(paid).contacts).toMatchObject([contact]);
    const other = valueOfBody(buildInboundMessage({ type: 'text', from: '12025550150' }, INDIAN_PHONE));
    expect(other.messages?.[0]?.from_user_id).not.toBe(userId);
  });

  test('of customers with a user id carry it beside the phone number', () => {
    const request = { type: 'text', userId: 'US.1', username: 'ben.example' };
    const { body } = buildInboundMessage(request, PHONE);
    const text = JSON.stringify(body);
    expect(text).toContain('"user_id":"US.1"');
    expect(text).toContain('"from_user_id":"US.1"');
    expect(text).toContain('"username":"ben.example"');
  });

  test('of customers without a phone number have neither from nor wa_id', () => {
    const { body } = buildInboundMessage({ type: 'text', from: '', userId: 'US.1' }, PHONE);
    expect(JSON.stringify(body)).not.toMatch(/"(from|wa_id)":/);
  });

  test.each(['poll_2031', 'constructor', '__proto__', 'toString'])(
    'of the unknown type %s have a member of that name',
    (type) => {
      const { body } = buildInboundMessage({ type }, PHONE);
      const text = serializeWebhookBody(body).toString();
      expect(text).toContain(`"type":"${type}"`);
    },
  );

  test('take members that the caller gives', () => {
    const request = { type: 'text', fields: { body: 'mine', extra: 1 }, messageFields: { group_id: 'g' } };
    const text = JSON.stringify(buildInboundMessage(request, PHONE).body);
    expect(text).toContain('"text":{"body":"mine","extra":1}');
    expect(text).toContain('"group_id":"g"');
  });
});

describe('statuses and payments', () => {
  test.each([
    ['st_sent_v24_pricing', 'sent'],
    ['st_delivered', 'delivered'],
    ['st_read', 'read'],
    ['st_failed_131026_undeliverable', 'failed'],
  ])('have the members and types of the fixture %s', async (name, status) => {
    const built = buildMessageStatus({ id: 'wamid.x', status, recipientId: '12025550143' }, PHONE);
    const { contacts, ...value } = valueOfBody(built);
    expect(shapeOf(value)).toEqual(shapeOf(valueOfBody({ body: await fixture(name) })));
    const contact = { profile: { name: 'Asha Tester' }, wa_id: '12025550143' };
    const shown = [{ ...contact, user_id: expect.stringMatching(/^US\./) }];
    expect(contacts).toEqual(status === 'failed' ? undefined : shown);
  });

  test.each([
    ['pay_pending', 'pending'],
    ['pay_refund_pending', 'refund'],
  ])('have the members and types of the fixture %s', async (name, status) => {
    const { contacts, ...value } = valueOfBody(buildPaymentStatus({ status }, INDIAN_PHONE));
    const { contacts: _contacts, ...expected } = valueOfBody({ body: await fixture(name) });
    expect(shapeOf(value)).toEqual(shapeOf(expected));
    expect(contacts).toMatchObject([{ wa_id: '910000000143', user_id: expect.stringMatching(/^IN\./) }]);
  });

  test('of one reference name the same transaction while pending, captured and refunded', () => {
    const transactions = ['pending', 'captured', 'refund'].map((status) => {
      const { body } = buildPaymentStatus({ status, referenceId: 'ord-1' }, INDIAN_PHONE);
      return /"transaction":\{"id":"(\w+)"/.exec(JSON.stringify(body))?.[1];
    });
    expect(transactions[0]).toMatch(/^order_/);
    expect(new Set(transactions).size).toBe(1);
  });
});

describe('seeds', () => {
  test.each([...MESSAGES.map(([, { type }]) => type), 'future'])('make %s bodies repeatable', (type) => {
    const build = (seed: string) =>
      serializeWebhookBody(buildInboundMessage({ type, seed }, PHONE, MEDIA).body);
    expect(build('a')).toEqual(build('a'));
    expect(build('a')).not.toEqual(build('b'));
  });

  test('make payments repeatable', () => {
    const build = () => buildPaymentStatus({ status: 'refund', seed: 'a' }, INDIAN_PHONE);
    expect(build()).toEqual(build());
  });

  test('that are absent make every id another one', () => {
    const ids = Array.from({ length: 100 }, () => buildInboundMessage({ type: 'text' }, PHONE).id);
    expect(new Set(ids).size).toBe(100);
  });
});

test('ids hold the direction and the phone number where real ones hold them', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^\d{7,15}$/), fc.string(), (waId, seed) => {
      for (const [make, direction, idLength] of [
        [inboundWamid, 0x12, 20],
        [outboundWamid, 0x11, 18],
      ] as const) {
        const bytes = Buffer.from(make(waId, createRandomSource(seed)).slice('wamid.'.length), 'base64');
        const user = waId.length;
        expect([...bytes.subarray(0, 3)]).toEqual([0x1c, 0x18, user]);
        expect(bytes.toString('latin1', 3, 3 + user)).toBe(waId);
        expect([...bytes.subarray(3 + user, 9 + user)]).toEqual([0x15, 2, 0, direction, 0x18, idLength]);
        expect(bytes.toString('latin1', 9 + user, bytes.length - 1)).toMatch(/^[0-9A-F]+$/);
        expect(bytes).toHaveLength(9 + user + idLength + 1);
        expect(bytes.at(-1)).toBe(0);
      }
    }),
  );
});

test('bodies are written in ASCII and read back as the same values', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: codePoint }), (value) => {
      const bytes = serializeWebhookBody(value);
      expect(bytes.every((byte) => byte < 0x7f)).toBe(true);
      expect(JSON.parse(bytes.toString())).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
  expect(serializeWebhookBody({ text: 'é😀/' }).toString()).toBe('{"text":"\\u00e9\\ud83d\\ude00/"}');
});
