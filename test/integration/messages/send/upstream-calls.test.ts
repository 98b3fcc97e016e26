import { beforeEach, describe, expect, test } from 'vitest';
import type { ReadReceipt } from '../../../../dev/sandbox/upstream-records.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { addConversation, addMessage } from '../../api/api-harness.ts';
import { askApi } from './ask-api.ts';
import { sendingStackOfFile } from './sending-stack.ts';

const stack = sendingStackOfFile();

beforeEach(async () => {
  await fetch(`${stack.sandboxUrl}/sandbox/receipts`, { method: 'DELETE' });
});

/** Adds a message of a customer of the test's tenant. */
async function newMessage(more: { direction?: string } = {}): Promise<string> {
  const tenant = { wabaId: stack.wabaId, phoneNumberId: stack.number };
  const conversation = await addConversation(stack.database, tenant);
  return await addMessage(stack.database, conversation, { ...tenant, ...more });
}

const ask = (url: string, options: Parameters<typeof askApi>[2] = {}) => askApi(stack, url, options);

async function receipts(): Promise<ReadReceipt[]> {
  const response = await fetch(`${stack.sandboxUrl}/sandbox/receipts`);
  return ((await response.json()) as { data: ReadReceipt[] }).data;
}

describe('marking a message as read', () => {
  const read = (id: string, body: unknown = {}, authorization = '') =>
    ask(`/api/external/messages/${id}/read`, { method: 'POST', body, authorization });

  test('tells upstream in its own form, and remembers when it was done first', async () => {
    const id = await newMessage();
    const [row] = await query<{ upstreamId: string }>(
      stack.database,
      'select upstream_id as "upstreamId" from messages where id = :id',
      { id },
    );
    const upstreamId = row?.upstreamId ?? '';
    const first = await read(id);
    expect(first.status).toBe(200);
    expect(first.body).toEqual({
      serviceMessageId: id,
      metaMessageId: upstreamId,
      readAt: expect.stringMatching(/Z$/),
      typingIndicator: false,
    });
    const again = await read(id, { typingIndicator: true });
    expect(again.body).toEqual({ ...first.body, typingIndicator: true });
    const message = { messaging_product: 'whatsapp', status: 'read', message_id: upstreamId };
    expect((await receipts()).map(({ phoneNumberId, body }) => [phoneNumberId, body])).toEqual([
      [stack.number, message],
      [stack.number, { ...message, typing_indicator: { type: 'text' } }],
    ]);
    const [stored] = await query<{ readAt: Date }>(
      stack.database,
      'select read_at as "readAt" from messages where id = :id',
      { id },
    );
    expect(stored?.readAt.toISOString()).toBe(first.body.readAt);
  });

  test('needs no body, and refuses one that is wrong', async () => {
    const id = await newMessage();
    const url = `/api/external/messages/${id}/read`;
    expect((await ask(url, { method: 'POST' })).status).toBe(200);
    for (const body of [{ typingIndicator: 'yes' }, { typing: true }, [], null]) {
      const answer = await read(id, body);
      expect([body, answer.status]).toEqual([body, 400]);
    }
  });

  test('is for messages of customers, and of one’s own WABA', async () => {
    const outbound = await newMessage({ direction: 'outbound' });
    const refused = await read(outbound);
    expect([refused.status, refused.body.error.code]).toEqual([422, 'message_not_inbound']);
    const { wabaId, number: phoneNumberId } = await stack.newTenant();
    const theirs = { wabaId, phoneNumberId };
    const foreign = await addMessage(stack.database, await addConversation(stack.database, theirs), theirs);
    for (const id of [foreign, '123456789', 'x', '0', '9'.repeat(40)]) {
      expect([id, (await read(id)).status]).toEqual([id, 404]);
    }
    expect(await receipts()).toEqual([]);
  });

  test('answers with upstream’s error when it refuses, and marks nothing', async () => {
    const id = await newMessage();
    await stack.addFault({ match: 'send', kind: 'status', status: 400, code: 131009, times: 1 });
    const { status, body } = await read(id);
    expect([status, body.error.code, body.error.type]).toEqual([424, 'upstream_refused', 'upstream_error']);
    expect(body.error.upstream).toMatchObject({ code: 131009 });
    const [row] = await query<{ readAt: Date | null }>(
      stack.database,
      'select read_at as "readAt" from messages where id = :id',
      { id },
    );
    expect(row?.readAt).toBeNull();
  });

  test('says so when upstream is busy, away or hangs, and when there is no token', async () => {
    const id = await newMessage();
    await stack.addFault({ match: 'send', kind: 'status', status: 503, code: 2, times: 1 });
    const busy = await read(id);
    expect([busy.status, busy.body.error.code]).toEqual([503, 'upstream_unavailable']);
    expect(busy.body.error.upstream).toMatchObject({ code: 2 });
    expect(Number(busy.headers['retry-after'])).toBeGreaterThanOrEqual(2);
    await stack.addFault({ match: 'send', kind: 'reset', times: 1 });
    const away = await read(id);
    expect([away.status, away.body.error.code, away.body.error.upstream]).toEqual([
      503,
      'upstream_unavailable',
      undefined,
    ]);
    await stack.addFault({ match: 'send', kind: 'slow', delayMs: 12_000, times: 1 });
    const slow = await read(id);
    // An answer that was waited for would be a success.
    expect([slow.status, slow.body.error.code]).toEqual([503, 'upstream_unavailable']);
    await stack.setAccessToken(null);
    const without = await read(id);
    expect([without.status, without.body.error.code]).toEqual([424, 'access_token_missing']);
  });
});

describe('templates', () => {
  const list = (search = '', authorization = '') =>
    ask(`/api/external/templates${search}`, { authorization });

  test('are shown as upstream knows them, their own members in camelCase', async () => {
    const { status, body } = await list();
    expect(status).toBe(200);
    expect([body.hasMore, body.nextCursor]).toEqual([false, null]);
    expect(body.data.length).toBeGreaterThanOrEqual(5);
    expect(body.data[0]).toEqual({
      id: '990000000000001',
      name: 'order_ready',
      language: 'en_US',
      status: 'APPROVED',
      category: 'UTILITY',
      components: expect.arrayContaining([
        { type: 'BODY', text: expect.any(String), example: { body_text: [['Asha', 'ORD-7']] } },
      ]),
      parameterFormat: 'POSITIONAL',
    });
  });

  test('can be filtered and paged through', async () => {
    const names = async (search: string) =>
      (await list(search)).body.data.map(
        (one: { name: string; language: string }) => `${one.name} ${one.language}`,
      );
    expect(await names('?name=order_ready')).toEqual(['order_ready en_US', 'order_ready de']);
    expect(await names('?status=REJECTED')).toEqual(['winter_offer en_US']);
    expect(await names('?category=AUTHENTICATION&language=en_US')).toEqual(['login_code en_US']);
    const all = await names('');
    const paged: string[] = [];
    let cursor = '';
    for (let page = 0; page < 10; page += 1) {
      const { body } = await list(`?limit=2${cursor && `&cursor=${cursor}`}`);
      paged.push(
        ...body.data.map((one: { name: string; language: string }) => `${one.name} ${one.language}`),
      );
      expect(body.hasMore).toBe(body.nextCursor !== null);
      if (!body.hasMore) break;
      cursor = body.nextCursor;
    }
    expect(paged).toEqual(all);
    const foreign = await list(`?limit=2&status=APPROVED&cursor=${cursor}`);
    expect([foreign.status, foreign.body.error.code]).toEqual([400, 'invalid_cursor']);
    const other = await stack.newTenant();
    expect((await list(`?limit=2&cursor=${cursor}`, other.authorization)).status).toBe(400);
  });

  test.each(['?limit=0', '?limit=101', '?status=approved', '?language=x', '?name=', '?fields=id'])(
    'the query %s is refused',
    async (search) => {
      expect((await list(search)).status).toBe(400);
    },
  );

  test('upstream’s errors are clear', async () => {
    await stack.addFault({ match: 'templates', kind: 'status', status: 403, times: 1 });
    const refused = await list();
    expect([refused.status, refused.body.error.code]).toEqual([424, 'upstream_refused']);
    expect(refused.body.error.upstream.code).toBe(200);
    await stack.addFault({ match: 'templates', kind: 'status', status: 429, times: 1 });
    expect((await list()).status).toBe(503);
    await stack.addFault({ match: 'templates', kind: 'endless', times: 1 });
    expect((await list()).status).toBe(503);
  });
});
