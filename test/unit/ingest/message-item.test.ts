import { describe, expect, test } from 'vitest';
import type { MessageItem } from '../../../src/ingest/split/message-items.ts';
import { bodyText, CONTACTS, METADATA, messageOf, splitFixture, splitText } from './support/upstream-body.ts';

function fixtureMessage(name: string): MessageItem {
  const [item] = splitFixture(name).items;
  if (item?.kind !== 'message') throw new Error(`${name} has no message`);
  return item;
}

/** A message from the usual sender with these members after the common ones. */
function withMembers(members: string): MessageItem {
  return messageOf(`{"from":"12025550143","id":"wamid.X","timestamp":"1790000000",${members}}`);
}

const NO_FACTS = { placeholder: false, media: null, order: null, identityChange: null, targetId: null };
const MEDIA = '"id":"600","mime_type":"a/b","sha256":"c2hh"';
const MEDIA_FACT = {
  upstreamMediaId: '600',
  upstreamError: null,
  mimeType: 'a/b',
  sha256: 'c2hh',
  url: null,
  caption: null,
  fileName: null,
};

describe('every message type of the platform', () => {
  test.each<[string, string, Partial<MessageItem>]>([
    ['text', '"text":{"body":"hi"}', {}],
    [
      'image',
      `"image":{${MEDIA},"caption":"c"}`,
      { media: { ...MEDIA_FACT, mediaType: 'image', caption: 'c' } },
    ],
    ['video', `"video":{${MEDIA}}`, { media: { ...MEDIA_FACT, mediaType: 'video' } }],
    ['audio', `"audio":{${MEDIA},"voice":true}`, { media: { ...MEDIA_FACT, mediaType: 'audio' } }],
    ['voice', `"voice":{${MEDIA}}`, { media: { ...MEDIA_FACT, mediaType: 'voice' } }],
    [
      'document',
      `"document":{${MEDIA},"filename":"ü.pdf"}`,
      { media: { ...MEDIA_FACT, mediaType: 'document', fileName: 'ü.pdf' } },
    ],
    ['sticker', `"sticker":{${MEDIA},"animated":true}`, { media: { ...MEDIA_FACT, mediaType: 'sticker' } }],
    ['hologram', `"hologram":{${MEDIA}}`, { media: { ...MEDIA_FACT, mediaType: 'hologram' } }],
    ['location', '"location":{"latitude":1.0,"longitude":-0,"url":"https://example.com"}', {}],
    ['contacts', '"contacts":[{"urls":[{"url":"https://example.com"}]}]', {}],
    ['interactive', '"interactive":{"type":"button_reply","button_reply":{"id":"1","title":"t"}}', {}],
    ['interactive', '"interactive":{"type":"list_reply","list_reply":{"id":"1","title":"t"}}', {}],
    ['interactive', '"interactive":{"type":"nfm_reply","nfm_reply":{"response_json":"[broken"}}', {}],
    [
      'interactive',
      '"interactive":{"type":"call_permission_reply","call_permission_reply":{"response":"accept"}}',
      {},
    ],
    [
      'interactive',
      '"interactive":{"type":"product","product":{"catalog_id":"7","id":"p","url":"https://shop"}}',
      {},
    ],
    ['interactive', '"errors":[{"code":0}]', {}],
    ['button', '"button":{"payload":"p","text":"t"}', {}],
    ['reaction', '"reaction":{"message_id":"wamid.T","emoji":""}', { targetId: 'wamid.T' }],
    ['reaction', '"reaction":{"message_id":"wamid.T"}', { targetId: 'wamid.T' }],
    ['system', '"system":{"type":"customer_identity_changed","body":"b"},"identity":{"hash":"h"}', {}],
    ['request_welcome', '"context":null', {}],
    ['unsupported', '"unsupported":{"type":"poll"},"errors":[{"code":131051}]', { placeholder: true }],
    ['unknown', '"errors":[{"code":131051}]', { placeholder: true }],
    [
      'edit',
      '"edit":{"original_message_id":"wamid.T","message":{"type":"text","text":{"body":"b"}}}',
      { targetId: 'wamid.T' },
    ],
    ['revoke', '"revoke":{"original_message_id":"wamid.T"}', { targetId: 'wamid.T' }],
    ['product_inquiry_2027', '"product_inquiry_2027":{"products":[{"id":"p"}]}', {}],
  ])('%s with %s passes through unchanged', (type, content, facts) => {
    const message = `{"from":"12025550143","id":"wamid.X","timestamp":"1790000000","type":"${type}",${content}}`;
    const item = messageOf(message);
    expect(item.type).toBe(type);
    expect(item).toMatchObject({ ...NO_FACTS, ...facts });
    expect(item.eventData).toBe(`{"metadata":${METADATA},"contacts":${CONTACTS},"message":${message}}`);
  });

  test.each(['', '"type":"",', '"type":5,', '"type":null,'])(
    'without a usable type (%s) counts as unknown',
    (type) => {
      const item = withMembers(`${type}"x":1`);
      expect([item.type, item.placeholder]).toEqual(['unknown', true]);
    },
  );
});

describe('media', () => {
  const url = '"url":"https://lookaside.example/x?mid=1"';

  test('keeps the short-lived url for the download and out of what the tenant gets', () => {
    const item = fixtureMessage('in_image_caption_url');
    expect(item.media).toEqual({
      mediaType: 'image',
      upstreamMediaId: '600000000000001',
      upstreamError: null,
      mimeType: 'image/jpeg',
      sha256: 'HUZ9jInE1/XJ7YJJtEUt+zlPgxSvC7mksE+EtIW9QVI=',
      url: expect.stringMatching(/^https:\/\/lookaside/),
      caption: 'Front door',
      fileName: null,
    });
    expect(item.eventData).not.toContain('lookaside');
    expect(item.rawJson).not.toContain('lookaside');
  });

  test('is found inside an edit, and its url removed there', () => {
    const item = withMembers(
      `"type":"edit","edit":{"original_message_id":"wamid.T","message":{"type":"image","image":{${url},${MEDIA}},"n":1.0}}`,
    );
    expect(item.media).toMatchObject({
      mediaType: 'image',
      upstreamMediaId: '600',
      url: 'https://lookaside.example/x?mid=1',
    });
    expect(item.rawJson).toContain(`"message":{"type":"image","image":{${MEDIA}},"n":1.0}`);
  });

  const errors = '"errors":[{"code":131052,"title":"t","message":"too big"},{"code":1}]';

  test.each<[string, string, string | null]>([
    ['no id', '"type":"image","image":{"mime_type":"image/jpeg",URL}', null],
    ['an empty id', '"type":"image","image":{"id":"",URL}', null],
    ['no content', '"type":"image"', null],
    ['content of the wrong kind', '"type":"image","image":["id"]', null],
    ['errors and no id', `"type":"image","image":{"mime_type":"a/b"},${errors}`, '131052 too big'],
    ['errors in its content', `"type":"image","image":{${errors}}`, '131052 too big'],
    [
      'errors and an unsupported type',
      `"type":"unsupported","unsupported":{"type":"image"},${errors}`,
      '131052 too big',
    ],
    ['odd errors', '"type":"image","errors":[[{}],7]', null],
  ])('with %s is media that upstream never had', (_name, members, upstreamError) => {
    const item = withMembers(members.replace('URL', url));
    expect(item.media).toMatchObject({ mediaType: 'image', upstreamMediaId: null, upstreamError, url: null });
    expect(item.rawJson).not.toContain('lookaside');
  });

  test.each([
    [
      'an edit in an edit',
      '"type":"edit","edit":{"message":{"type":"edit","edit":{"message":{"type":"image","image":{"id":"1"}}}}}',
    ],
    ['another error of an unsupported message', '"type":"unsupported","errors":[{"code":131051}]'],
    ['errors of a text', `"type":"text","text":{"body":"b"},${errors}`],
  ])('is not in %s', (_name, members) => {
    expect(withMembers(members).media).toBeNull();
  });

  test('takes every repetition of url out, under any spelling', () => {
    const item = withMembers(
      `"type":"image","image":{${url},${MEDIA},"u\\u0072l":"lookaside"},"image":{${MEDIA},${url}}`,
    );
    expect(item.rawJson).toContain(`"type":"image","image":{${MEDIA}},"image":{${MEDIA}}`);
  });

  test('leaves a url alone that is no media url', () => {
    const item = withMembers(
      `"type":"text","text":{"body":"b","id":"1",${url}},"image":{"link":1,${url}},${url}`,
    );
    expect(item.rawJson.split('lookaside')).toHaveLength(4);
  });

  test('without mime_type, with a numeric id or an endless url is still fetched by its id', () => {
    const item = withMembers(
      `"type":"video","video":{"id":123456789012345678901,"url":"https://${'u'.repeat(5000)}"}`,
    );
    expect(item.media).toMatchObject({ upstreamMediaId: '123456789012345678901', mimeType: null, url: null });
  });
});

describe('the sender', () => {
  const text = '"id":"wamid.X","type":"text"';
  const read = (message: string, contacts: string) => {
    const item = messageOf(`{${message}}`, contacts);
    return { sender: item.sender, contacts: JSON.parse(item.eventData).contacts as unknown[] };
  };

  test('with a username only is known by the business-scoped id', () => {
    expect(fixtureMessage('in_bsuid_only_username').sender).toEqual({
      waId: null,
      otherPhone: null,
      userId: 'US.10000000000000000144',
      parentUserId: 'US.ENT.20000000000000000144',
      name: 'Ben Example',
      username: 'ben.example',
    });
  });

  test('has the username without the @ that some payloads carry', () => {
    const contacts = '[{"profile":{"username":"@@ben"},"wa_id":"1"}]';
    expect(read(`"from":"1",${text}`, contacts).sender.username).toBe('ben');
    expect(
      read(`"from":"1",${text}`, '[{"profile":{"username":"@"},"wa_id":"1"}]').sender.username,
    ).toBeNull();
  });

  test('is matched by id and never by position', () => {
    const contacts =
      '[{"wa_id":"2","profile":{"name":"Two"}},{"wa_id":"1","profile":{"name":"One"},"user_id":"U1"}]';
    const { sender, contacts: entries } = read(`"from":"1",${text}`, contacts);
    expect(sender).toMatchObject({ waId: '1', userId: 'U1', name: 'One' });
    expect(entries).toEqual([{ wa_id: '1', profile: { name: 'One' }, user_id: 'U1' }]);
  });

  test('is the sole contact of a value with one sender, although the ids differ', () => {
    const contacts = '[{"wa_id":"5491112345678","profile":{"name":"Two"}}]';
    const { sender, contacts: entries } = read(`"from":"541112345678",${text}`, contacts);
    expect(sender).toMatchObject({ waId: '5491112345678', otherPhone: '541112345678', name: 'Two' });
    expect(entries).toEqual([{ wa_id: '5491112345678', profile: { name: 'Two' } }]);
  });

  test('is not the sole contact of a value with two senders, nor one of two contacts', () => {
    const contactsOf = (from: string[], contacts: string) => {
      const messages = from.map((waId, n) => `{"id":"w${n}","from":"${waId}"}`).join();
      const { items } = splitText(bodyText(`"contacts":[${contacts}],"messages":[${messages}]`));
      return items.map((item) => JSON.parse(item.eventData).contacts.length);
    };
    expect(contactsOf(['1', '3'], '{"wa_id":"2"}')).toEqual([0, 0]);
    expect(contactsOf(['1', '2'], '{"wa_id":"2"}')).toEqual([0, 1]);
    expect(contactsOf(['1', '1'], '{"wa_id":"2"}')).toEqual([1, 1]);
    expect(contactsOf(['1'], '{"wa_id":"2"},{"wa_id":"3"}')).toEqual([0]);
    expect(contactsOf(['1'], '{"wa_id":"2"},7')).toEqual([0]);
  });

  test('without ids is the sole contact, but none of several', () => {
    expect(read(text, '[{"wa_id":"2","user_id":"U2"}]')).toMatchObject({
      sender: { waId: '2', userId: 'U2' },
      contacts: [{ wa_id: '2', user_id: 'U2' }],
    });
    expect(read(text, '[{"wa_id":"2"},{"wa_id":"3"}]')).toMatchObject({
      sender: { waId: null },
      contacts: [],
    });
  });

  test('can have several entries, which stay in order and unmodified', () => {
    const contacts = '[{"user_id":"U1","profile":{"name":"A"}},{"wa_id":"9"},{ "wa_id" : "1" , "n":1.0 }]';
    const item = messageOf(`{"from":"1","from_user_id":"U1",${text}}`, contacts);
    expect(item.eventData).toContain(
      '"contacts":[{"user_id":"U1","profile":{"name":"A"}},{ "wa_id" : "1" , "n":1.0 }],',
    );
  });

  test.each(['null', '{}', '"x"', '[null,5,"x",[]]', '[{"profile":null,"wa_id":"1"}]', '[{"wa_id":{}}]'])(
    'survives contacts of %s',
    (contacts) => {
      expect(read(`"from":"1",${text}`, contacts).sender).toMatchObject({
        waId: '1',
        name: null,
        username: null,
      });
    },
  );
});

describe('identity changes', () => {
  test('by user id only have no phone numbers', () => {
    const item = messageOf(
      '{"id":"w","type":"system","from_user_id":"US.1","system":{"type":"user_changed_user_id","user_id":"US.2","previous_user_id":"US.1"}}',
    );
    expect(item.identityChange).toEqual({
      previousWaId: null,
      previousUserId: 'US.1',
      waId: null,
      userId: 'US.2',
    });
  });

  test('take the id before from the message when the change does not name it, unless it is the new one', () => {
    const change = (from: string) =>
      messageOf(
        `{"id":"w","type":"system","from_user_id":"${from}","system":{"type":"user_changed_user_id","user_id":"US.2"}}`,
      ).identityChange;
    expect(change('US.1')?.previousUserId).toBe('US.1');
    expect(change('US.2')?.previousUserId).toBeNull();
  });

  test('by number come without contacts', () => {
    const item = fixtureMessage('in_system_user_changed_number');
    expect(item.identityChange).toEqual({
      previousWaId: '12025550143',
      previousUserId: null,
      waId: '12025550199',
      userId: null,
    });
    expect(item.eventData).toContain('"contacts":[],');
  });
});

describe('references', () => {
  test('name the message that is answered, edited, or revoked', () => {
    expect(fixtureMessage('in_text_reply_context').contextId).toMatch(/^wamid\./);
    expect(fixtureMessage('in_text_forwarded').contextId).toBeNull();
    expect(fixtureMessage('in_edit_text')).toMatchObject({
      contextId: 'M0',
      targetId: expect.stringMatching(/^wamid\./),
    });
    expect(fixtureMessage('in_revoke').targetId).toMatch(/^wamid\./);
    expect(withMembers('"type":"text","group_id":"G1"').groupId).toBe('G1');
  });
});

describe('timestamps', () => {
  test.each<[string, string | null]>([
    ['"1790000000"', '2026-09-21T14:13:20.000Z'],
    ['1790000000', '2026-09-21T14:13:20.000Z'],
    ['"1790000000123"', '2026-09-21T14:13:20.123Z'],
    ['"1790000000.5"', '2026-09-21T14:13:20.500Z'],
    ['"0"', null],
    ['"-5"', null],
    ['"99999999999999999999"', null],
    ['"1e3"', null],
    ['"yesterday"', null],
    ['""', null],
    ['null', null],
    ['{}', null],
  ])('%s is %s', (timestamp, expected) => {
    const item = messageOf(`{"id":"w","timestamp":${timestamp}}`);
    expect(item.sentAt?.toISOString() ?? null).toBe(expected);
  });
});

describe('deduplication', () => {
  test('lets the real message supersede a placeholder of the same id, and nothing else', () => {
    const keyOf = (type: string) => messageOf(`{"id":"w","type":"${type}"}`).dedupKey;
    expect(keyOf('unsupported')).toBe(keyOf('unknown'));
    expect(keyOf('text')).toBe(keyOf('image'));
    expect(keyOf('text')).not.toBe(keyOf('unsupported'));
  });
});

describe('order messages', () => {
  test('hold the cart as it is written, and the parts of the order event', () => {
    const cart =
      '{"catalog_id":"700","text":"","product_items":[{"product_retailer_id":"a","quantity":2,"item_price":149.50,"currency":"INR"},null,{"quantity":"x"}]}';
    const item = withMembers(`"type":"order","order":${cart}`);
    expect(item.order).toEqual({
      catalogId: '700',
      cartJson: cart,
      items: [
        { retailerId: 'a', quantityText: '2', itemPriceText: '149.50', currency: 'INR' },
        { retailerId: null, quantityText: 'x', itemPriceText: null, currency: null },
      ],
    });
    expect(item.orderEventParts).toEqual({
      eventId: '700',
      metadataJson: METADATA,
      contactsJson: CONTACTS,
      orderJson: cart,
    });
  });

  test.each(['{}', '{"catalog_id":null}', '{"catalog_id":""}', `{"catalog_id":"${'7'.repeat(600)}"}`])(
    'take the message id where the catalog id is missing or no id: %.40s',
    (cart) => {
      expect(withMembers(`"type":"order","order":${cart}`).orderEventParts?.eventId).toBe('wamid.X');
    },
  );

  test('without an order object have no order event', () => {
    const item = withMembers('"type":"order","order":null');
    expect([item.order, item.orderEventParts]).toEqual([null, null]);
  });
});
