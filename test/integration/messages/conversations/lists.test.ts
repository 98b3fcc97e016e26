import { describe, expect, test } from 'vitest';
import { insertMedia } from '../../../../src/features/messages/media/media.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../../support/take-in.ts';
import { fixtureBody } from '../../../support/upstream-fixtures.ts';
import { apiClient } from '../../api/api-client.ts';
import {
  addConversation,
  addMessage,
  NUMBER,
  PUBLIC_URL,
  SECOND_NUMBER,
  startTestApi,
  WABA,
} from '../../api/api-harness.ts';

describe('GET /me', () => {
  test('tells whose the key is, with userId as a number, at both of its paths', async () => {
    const api = await startTestApi();
    await execute(
      api.database,
      `update phone_numbers set quality_rating = null where phone_number_id = '${SECOND_NUMBER}'`,
    );
    const { get } = await apiClient(api);
    const response = await get('/me');
    const number = { displayPhoneNumber: '12025550100', verifiedName: 'Fixture Store' };
    expect(response.json()).toEqual({
      userId: expect.any(Number),
      wabaId: WABA,
      businessName: 'Fixture Store',
      phoneNumbers: [
        { phoneNumberId: NUMBER, ...number, qualityRating: 'GREEN' },
        { phoneNumberId: SECOND_NUMBER, ...number },
      ],
    });
    expect((await get('/api/external/me')).body).toBe(response.body);
    expect((await get('/me?verbose=1')).json().error).toMatchObject({
      code: 'invalid_parameter',
      param: 'verbose',
    });
  });
});

describe('paging', () => {
  test('a walk over conversations sees each once, in order, also with equal and microsecond-close times', async () => {
    const api = await startTestApi();
    const { walk } = await apiClient(api);
    const ids: string[] = [];
    for (let index = 0; index < 60; index += 1) ids.push(await addConversation(api.database));
    await execute(
      api.database,
      `update conversations set last_message_at = timestamptz '2026-11-20' + (id % 7) * interval '1 microsecond'`,
    );
    const full = await walk('/api/external/conversations?limit=100');
    const expected = ids.toSorted((a, b) => (Number(b) % 7) - (Number(a) % 7) || Number(b) - Number(a));
    expect(full.map((row) => row.id)).toEqual(expected);
    for (const limit of [1, 7, 59, 60]) {
      const rows = await walk(`/api/external/conversations?limit=${limit}`, () =>
        addConversation(api.database),
      );
      const known = rows.map((row) => row.id).filter((id) => ids.includes(id));
      expect(known).toEqual(expected);
    }
  });

  test('a walk over messages in either order sees each that was there once, while new ones come', async () => {
    const api = await startTestApi();
    const { walk } = await apiClient(api);
    const conversation = await addConversation(api.database);
    const other = await addConversation(api.database);
    const ids: string[] = [];
    for (let index = 0; index < 45; index += 1) {
      ids.push(await addMessage(api.database, conversation));
      await addMessage(api.database, other);
    }
    for (const limit of [1, 7, 45]) {
      const url = `/api/external/conversations/${conversation}/messages?limit=${limit}`;
      const newestFirst = await walk(url, () => addMessage(api.database, conversation));
      const seen = newestFirst.map((row) => row.serviceMessageId);
      expect(seen.filter((id) => ids.includes(id))).toEqual(ids.toReversed());
      expect(new Set(seen).size).toBe(seen.length);
    }
    let isFull = false;
    const oldestFirst = await walk(
      `/api/external/conversations/${conversation}/messages?order=asc&limit=7`,
      async () => {
        if (!isFull) ids.push(await addMessage(api.database, conversation));
        isFull = ids.length > 70;
      },
    );
    const seen = oldestFirst.map((row) => row.serviceMessageId).filter((id) => ids.includes(id));
    expect(seen).toEqual(ids);
  });

  test('the filter by number shows its conversations only, and its cursors do not open without it', async () => {
    const api = await startTestApi();
    const { walk, page, get } = await apiClient(api);
    const mine = [await addConversation(api.database), await addConversation(api.database)];
    await addConversation(api.database, { phoneNumberId: SECOND_NUMBER });
    const url = `/api/external/conversations?phoneNumberId=${NUMBER}&limit=1`;
    expect(new Set((await walk(url)).map((row) => row.id))).toEqual(new Set(mine));
    const { nextCursor } = await page(url);
    for (const other of [
      '/api/external/conversations?limit=1',
      `/api/external/conversations?phoneNumberId=${SECOND_NUMBER}`,
      `/api/external/conversations/${mine[0]}/messages?limit=1`,
    ]) {
      const response = await get(`${other}&cursor=${nextCursor}`);
      expect([response.statusCode, response.json().error.code]).toEqual([400, 'invalid_cursor']);
    }
  });

  test('the cursor of one conversation or order does not open another', async () => {
    const api = await startTestApi();
    const { page, get } = await apiClient(api);
    const [first, second] = [await addConversation(api.database), await addConversation(api.database)];
    for (const conversation of [first, first, second, second]) await addMessage(api.database, conversation);
    const url = (id: string) => `/api/external/conversations/${id}/messages?limit=1`;
    const { nextCursor } = await page(url(first));
    expect((await get(`${url(first)}&cursor=${nextCursor}`)).statusCode).toBe(200);
    expect((await get(`${url(second)}&cursor=${nextCursor}`)).statusCode).toBe(400);
    expect((await get(`${url(first)}&order=asc&cursor=${nextCursor}`)).statusCode).toBe(400);
  });

  test('odd parameters are told by name, and never answered otherwise', async () => {
    const api = await startTestApi();
    const { get } = await apiClient(api);
    const conversation = await addConversation(api.database);
    const wrong: [string, string, string][] = [
      ...['0', '-1', '101', '1.5', '1e1', '0x10', ' 5', '', 'abc', '%00', '99999999999999999999'].map(
        (limit): [string, string, string] => [`limit=${limit}`, 'limit', 'invalid_parameter'],
      ),
      ['limit=1&limit=2', 'limit', 'invalid_parameter'],
      ['order=up', 'order', 'invalid_parameter'],
      ['order=asc&order=asc', 'order', 'invalid_parameter'],
      ['Limit=1', 'Limit', 'invalid_parameter'],
      ['__proto__=1', '__proto__', 'invalid_parameter'],
      ['constructor=1', 'constructor', 'invalid_parameter'],
      ['toString', 'toString', 'invalid_parameter'],
      ['cursor=', 'cursor', 'invalid_cursor'],
      ['cursor=%00', 'cursor', 'invalid_parameter'],
      ['cursor=AAAA', 'cursor', 'invalid_cursor'],
      [`cursor=${'A'.repeat(5000)}`, 'cursor', 'invalid_cursor'],
      ['cursor=a&cursor=b', 'cursor', 'invalid_parameter'],
    ];
    for (const [text, param, code] of wrong) {
      const response = await get(`/api/external/conversations/${conversation}/messages?${text}`);
      expect([text, response.statusCode]).toEqual([text, 400]);
      expect([text, response.json().error]).toEqual([text, expect.objectContaining({ param, code })]);
    }
    for (const phoneNumberId of ['%00', '', 'x'.repeat(129), '1&phoneNumberId=2']) {
      const response = await get(`/api/external/conversations?phoneNumberId=${phoneNumberId}`);
      expect([phoneNumberId, response.statusCode]).toEqual([phoneNumberId, 400]);
      expect(response.json().error).toMatchObject({ param: 'phoneNumberId', code: 'invalid_parameter' });
    }
    for (const phoneNumberId of ['%F0%9F%92%A9', "1'--", '%ff', '%ED%A0%80', '%']) {
      const response = await get(`/api/external/conversations?phoneNumberId=${phoneNumberId}`);
      expect([phoneNumberId, response.statusCode, response.body]).toEqual([
        phoneNumberId,
        200,
        '{"data":[],"hasMore":false,"nextCursor":null}',
      ]);
    }
  });
});

describe('messages', () => {
  test('carry the upstream object exactly as it is stored, with numbers that JSON.parse would change', async () => {
    const api = await startTestApi();
    const { get } = await apiClient(api);
    const conversation = await addConversation(api.database);
    const content =
      '{"id":"x",  "big":123456789012345678901234567890,"exact":1.10,"text":"\\u0000 \\ud800 é","id":"y"}';
    await addMessage(api.database, conversation, { content });
    const response = await get(`/api/external/conversations/${conversation}/messages`);
    expect(response.body).toContain(`"message":${content}}`);
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(Number(response.headers['content-length'])).toBe(Buffer.byteLength(response.body));
  });

  test('of a text from upstream have all their fields', async () => {
    const api = await startTestApi();
    const { page } = await apiClient(api);
    await takeIn(api.database, fixtureBody('in_text'));
    const [conversation] = (await page('/api/external/conversations')).data;
    const upstream = JSON.parse(fixtureBody('in_text').toString()).entry[0].changes[0].value;
    const [message] = upstream.messages;
    const sentMs = Number(message.timestamp) * 1000;
    const { data } = await page(`/api/external/conversations/${conversation?.id}/messages`);
    expect(conversation).toEqual({
      id: expect.stringMatching(/^\d+$/),
      phoneNumberId: upstream.metadata.phone_number_id,
      customer: {
        waId: upstream.contacts[0].wa_id ?? null,
        userId: upstream.contacts[0].user_id ?? null,
        name: upstream.contacts[0].profile.name,
        username: null,
      },
      lastMessageAt: expect.stringMatching(/^\d{4}-.*Z$/),
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
      customerServiceWindow: {
        isOpen: sentMs > Date.now() - 86_400_000,
        expiresAt: new Date(sentMs + 86_400_000).toISOString(),
        lastInboundAt: new Date(sentMs).toISOString(),
        lastCallAt: null,
      },
      lastMessage: data[0],
      optOut: null,
    });
    expect(data).toEqual([
      {
        serviceMessageId: expect.stringMatching(/^\d+$/),
        metaMessageId: message.id,
        conversationId: conversation?.id,
        phoneNumberId: upstream.metadata.phone_number_id,
        direction: 'inbound',
        type: 'text',
        timestamp: new Date(Number(message.timestamp) * 1000).toISOString(),
        createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
        readAt: null,
        state: 'received',
        status: null,
        statusAt: null,
        mediaPending: false,
        mediaUrl: null,
        reactions: [],
        message,
      },
    ]);
  });

  test('of an outbound message show the state that its statuses give, also one that came first', async () => {
    const api = await startTestApi();
    const { page } = await apiClient(api);
    const conversation = await addConversation(api.database);
    const id = await addMessage(api.database, conversation, { direction: 'outbound' });
    await execute(
      api.database,
      `insert into message_states select phone_number_id, upstream_id, 'read', '2026-11-20T10:00:05Z' from messages`,
    );
    const { data } = await page(`/api/external/conversations/${conversation}/messages`);
    expect(data[0]).toMatchObject({
      serviceMessageId: id,
      status: 'read',
      statusAt: '2026-11-20T10:00:05.000Z',
    });
  });

  test('of a merged conversation are found under its old id, with those of the kept one', async () => {
    const api = await startTestApi();
    const { get, page } = await apiClient(api);
    const kept = await addConversation(api.database);
    const merged = await addConversation(api.database);
    await addMessage(api.database, kept);
    await execute(api.database, 'update conversations set merged_into = :kept where id = :merged', {
      kept,
      merged,
    });
    const answers = [kept, merged].map((id) => get(`/api/external/conversations/${id}/messages`));
    const [byKept, byMerged] = await Promise.all(answers);
    expect(byMerged?.body).toBe(byKept?.body);
    expect((await page('/api/external/conversations')).data.map((row) => row.id)).toEqual([kept]);
  });
});

describe('media', () => {
  const file = {
    wabaId: WABA,
    mediaType: 'image',
    upstreamMediaId: '77',
    upstreamError: null,
    mimeType: 'image/jpeg',
    sha256: 'upstream hash',
    url: 'https://lookaside.example/secret',
    caption: 'A "caption"',
    fileName: null,
  };

  async function withMedia() {
    const api = await startTestApi();
    const { get, page } = await apiClient(api);
    const conversation = await addConversation(api.database);
    const messageId = await addMessage(api.database, conversation, { type: 'image' });
    await api.database.transaction((trx) => insertMedia(trx, [{ ...file, messageId }]));
    const set = (assignments: string) => execute(api.database, `update media set ${assignments}`);
    const media = async () => (await get(`/api/external/messages/${messageId}/media`)).json();
    const message = async () => (await page(`/api/external/conversations/${conversation}/messages`)).data[0];
    return { set, media, message, messageId };
  }

  test('is pending without an address until it is stored, then has an https one', async () => {
    const { set, media, message, messageId } = await withMedia();
    const known = {
      serviceMessageId: messageId,
      metaMessageId: expect.stringMatching(/^wamid\./),
      mediaType: 'image',
      mimeType: 'image/jpeg',
      caption: 'A "caption"',
    };
    const pending = { mediaPending: true, mediaPath: null, mediaUrl: null, sizeBytes: null, sha256: null };
    expect(await media()).toEqual({ ...known, ...pending });
    expect(await message()).toMatchObject({ ...known, mediaPending: true, mediaUrl: null });
    await set(`state = 'stored', object_key = 'AbCdEf', size_bytes = 5000000000, sha256 = 'abc'`);
    expect(await media()).toEqual({
      ...known,
      mediaPending: false,
      mediaPath: '/received_media/AbCdEf',
      mediaUrl: `${PUBLIC_URL}/received_media/AbCdEf`,
      sizeBytes: 5_000_000_000,
      sha256: 'abc',
    });
    expect(await message()).toMatchObject({
      ...known,
      mediaPending: false,
      mediaUrl: `${PUBLIC_URL}/received_media/AbCdEf`,
    });
  });

  test('that finally failed is not pending and says why', async () => {
    const { set, media, message } = await withMedia();
    await set(`state = 'failed', error_code = 'gone', error_message = 'The file is gone.'`);
    const failed = {
      mediaPending: false,
      mediaUrl: null,
      mediaError: { code: 'gone', message: 'The file is gone.' },
    };
    expect(await media()).toMatchObject({ ...failed, mediaPath: null });
    expect(await message()).toMatchObject(failed);
  });

  const error = { code: 131052, title: 'Media file size too big', message: 'Media file size too big' };

  test.each([
    ['an image', { type: 'image', image: { mime_type: 'image/jpeg', caption: 'Look' }, errors: [error] }],
    ['an unsupported message', { type: 'unsupported', unsupported: { type: 'image' }, errors: [error] }],
  ])('that upstream never had is an error at once, in %s', async (_name, content) => {
    const api = await startTestApi();
    const { get, page } = await apiClient(api);
    await takeIn(api.database, inboundBody({ id: 'wamid.never', from: '12025550143', ...content }));
    const failed = {
      mediaPending: false,
      mediaUrl: null,
      mediaType: 'image',
      mediaError: {
        code: 'media_unavailable',
        message:
          'The upstream platform could not take this media from the customer: 131052 Media file size too big',
      },
    };
    const [conversation] = (await page('/api/external/conversations')).data;
    const [message] = (await page(`/api/external/conversations/${conversation?.id}/messages`)).data;
    expect(message).toMatchObject(failed);
    const id = message?.serviceMessageId;
    expect((await get(`/api/external/messages/${id}`)).json()).toMatchObject(failed);
    const media = await get(`/api/external/messages/${id}/media`);
    expect([media.statusCode, media.json()]).toEqual([200, expect.objectContaining(failed)]);
    expect(await query(api.database, 'select 1 from workflow_tasks')).toEqual([]);
    const real = { type: 'image', image: { id: '77', mime_type: 'image/png' } };
    await takeIn(api.database, inboundBody({ id: 'wamid.never', from: '12025550143', ...real }));
    const states = await query(
      api.database,
      'select state, upstream_media_id from media order by message_id',
    );
    const never = { state: 'failed', upstream_media_id: null };
    const isPlaceholder = content.type === 'unsupported';
    expect(states).toEqual(isPlaceholder ? [never, { state: 'pending', upstream_media_id: '77' }] : [never]);
  });

  test('that upstream never had gives way to the real one of the same batch', async () => {
    const { database } = await startTestApi();
    const message = { id: 'wamid.never', from: '12025550143' };
    const placeholder = { type: 'unsupported', unsupported: { type: 'image' }, errors: [error] };
    const real = { type: 'image', image: { id: '77', mime_type: 'image/png' } };
    await takeIn(database, inboundBody({ ...message, ...placeholder }), inboundBody({ ...message, ...real }));
    expect(await query(database, 'select state, upstream_media_id from media')).toEqual([
      { state: 'pending', upstream_media_id: '77' },
    ]);
  });
});

function inboundBody(message: object): Buffer {
  const metadata = { display_phone_number: '12025550100', phone_number_id: NUMBER };
  const value = { messaging_product: 'whatsapp', metadata, contacts: [], messages: [message] };
  const entry = [{ id: WABA, changes: [{ field: 'messages', value }] }];
  return Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }));
}
