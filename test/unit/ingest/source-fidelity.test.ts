import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { splitUpstreamBody } from '../../../src/ingest/split/upstream-items.ts';
import { bodyText, messageOf, paymentOf, splitText, statusOf } from './support/upstream-body.ts';

const ODD_VALUES = [
  ...['9007199254740993', '-0', '1.0', '1e3', '1E+3', '0.10', '123456789012345678901234567890.5', '1e400'],
  ...[
    '"\\u00e4"',
    '"ä"',
    '"\\/"',
    '"\\ud83d\\ude4f"',
    '"\\ud800"',
    '"\\u0000"',
    '"\\u0061"',
    '"\u2028"',
    '""',
  ],
  ...[
    '{"2":1,"1":2,"2":3}',
    '{"__proto__":{"a":1}}',
    '{ "a" :\t[ 1 , 2 ] }',
    '[[],{},null,true]',
    '{"constructor":0}',
  ],
];

describe('what upstream wrote reaches the tenant character for character', () => {
  const oddMembers = fc
    .array(
      fc.tuple(
        fc.constantFrom('z', 'a', '10', '9', '__proto__', 'e\\u0078', 'toJSON'),
        fc.constantFrom(...ODD_VALUES),
      ),
    )
    .map((pairs) => pairs.map(([name, value]) => `,"${name}" : ${value}`).join(''));

  test('in messages, statuses, payments, contacts and metadata', () => {
    fc.assert(
      fc.property(oddMembers, (odd) => {
        const contact = `{"wa_id":"1"${odd}}`;
        const message = `{"id":"w","from":"1","type":"text","text":{"body":"b"${odd}}${odd}}`;
        const messageData = messageOf(message, `[${contact}]`).eventData;
        expect(messageData).toContain(`"contacts":[${contact}],"message":${message}}`);
        const status = `{"id":"w","status":"sent"${odd}}`;
        expect(statusOf(status).eventData).toContain(`"status":${status}}`);
        const transaction = `{"id":"t"${odd}}`;
        const payment = `{"type":"payment","status":"captured","payment":{"transaction":${transaction}}${odd}}`;
        const paymentData = paymentOf(payment).eventData;
        expect(paymentData).toContain(`"transaction":${transaction},"raw":${payment}}`);
        const metadata = `{"phone_number_id":"8"${odd}}`;
        const [item] = splitText(bodyText('"messages":[{"id":"w"}]', metadata)).items;
        expect(item?.eventData).toContain(`{"metadata":${metadata},"contacts":[],`);
      }),
    );
  });

  test('in the cart of an order', () => {
    const cart =
      '{"catalog_id":"7","product_items":[{"item_price":149.50,"quantity":1e0,"x":9007199254740993}]}';
    expect(messageOf(`{"id":"w","type":"order","order":${cart}}`).orderEventParts?.orderJson).toBe(cart);
  });
});

describe('bytes that are not UTF-8', () => {
  test('become U+FFFD, a byte order mark goes, and the message still arrives', () => {
    const [head, tail] = bodyText('"messages":[{"id":"w","text":{"body":"a#b"}}]').split('#');
    const bytes = Buffer.concat([
      Buffer.from([0xef, 0xbb, 0xbf]),
      Buffer.from(head ?? ''),
      Buffer.from([0xff]),
      Buffer.from(tail ?? ''),
    ]);
    expect(splitUpstreamBody(bytes).items[0]?.eventData).toContain('"body":"a\ufffdb"');
  });
});

describe('text for the database', () => {
  test('holds no U+0000 and no lone surrogate and is cut, while the tenant gets what was written', () => {
    const name = `\\u0000\\ud800${'n'.repeat(400)}`;
    const item = messageOf(
      '{"id":"w\\u0000","from":"1","type":"image","image":{"id":"m","mime_type":"a\\u0000","caption":"\\udc00"}}',
      `[{"wa_id":"1","profile":{"name":"${name}"}}]`,
    );
    expect(item.upstreamId).toMatch(/^w\ufffd~[0-9a-f]{16}$/);
    expect(item.sender.name).toBe(`\ufffd\ufffd${'n'.repeat(254)}`);
    expect(item.media).toMatchObject({ mimeType: 'a\ufffd', caption: '\ufffd' });
    expect(item.eventData).toContain(name);
    expect(item.eventData).toContain('"id":"w\\u0000"');
  });

  test('that only looks alike after cleaning still counts as different', () => {
    const keyOf = (id: string) => messageOf(`{"id":"${id}"}`).dedupKey;
    expect(keyOf('w\\u0000')).not.toBe(keyOf('w\ufffd'));
    expect(keyOf('w\\u0000')).not.toContain('\0');
    const storedId = (id: string) => messageOf(`{"id":"${id}"}`).upstreamId;
    expect(new Set(['w\\u0000', 'w\\ud800', 'w\\udbff', 'w\ufffd'].map(storedId)).size).toBe(4);
  });
});
