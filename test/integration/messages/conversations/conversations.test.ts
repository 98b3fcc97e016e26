import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { touchConversations } from '../../../../src/features/customers/customers.ts';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { apiClient } from '../../api/api-client.ts';
import {
  addConversation,
  addMessage,
  NUMBER,
  OTHER_NUMBER,
  OTHER_WABA,
  SECOND_NUMBER,
  startTestApi,
  WABA,
} from '../../api/api-harness.ts';
import { externalClient } from '../../api/external-client.ts';

const LIST = '/api/external/conversations';

describe('the list of conversations', () => {
  test('finds a customer by phone in any usual form, by wa_id, by another spelling that upstream taught, and by user id', async () => {
    const { database, ...api } = await startTestApi();
    const { page, get } = await apiClient({ database, ...api });
    const wanted = await addConversation(database, { waId: '551187654321' });
    await addConversation(database, { waId: '12025550143' });
    const foreign = { wabaId: OTHER_WABA, phoneNumberId: OTHER_NUMBER, waId: '551187654321' };
    await addConversation(database, foreign);
    await execute(
      database,
      `update contacts set user_id = 'BR.1a2B3c' where wa_id = '551187654321' and waba_id = '${WABA}'`,
    );
    await execute(database, `insert into phone_aliases values ('${WABA}', '5511987654321', '551187654321')`);
    const forms = [
      '551187654321',
      '+55 (11) 8765-4321',
      '0055 11 8765.4321',
      'tel:+55-11-8765-4321',
      '+55 11 98765-4321',
      'BR.1a2B3c',
    ];
    for (const form of [...forms.map(encodeURIComponent), '+551187654321']) {
      const { data } = await page(`${LIST}?customer=${form}`);
      expect([form, data.map(({ id }) => id)]).toEqual([form, [wanted]]);
    }
    for (const nobody of ['5511876543210', 'BR.1a2b3c', '0']) {
      expect([nobody, (await page(`${LIST}?customer=${nobody}`)).data]).toEqual([nobody, []]);
    }
    for (const wrong of ['%F0%9F%92%A9', "'--", '+', '%ff', 'BR-1a2B3c', 'br.1a2B3c'])
      expect([wrong, (await get(`${LIST}?customer=${wrong}`)).statusCode]).toEqual([wrong, 400]);
  });

  test('finds a customer by a body, so that no number stands in an address', async () => {
    const api = await startTestApi();
    const call = await externalClient(api);
    const wanted = [
      await addConversation(api.database, { waId: '12025550143' }),
      await addConversation(api.database, { waId: '12025550144' }),
    ];
    const search = async (body: object) => await call('POST', `${LIST}/search`, body);
    const found = await search({ customer: '+1 202 555-0143', limit: 5 });
    expect([found.statusCode, found.json().data.map(({ id }: { id: string }) => id)]).toEqual([
      200,
      [wanted[0]],
    ]);
    const first = (await search({ limit: 1 })).json();
    const second = (await search({ limit: 1, cursor: first.nextCursor })).json();
    expect([...first.data, ...second.data].map(({ id }) => id).sort()).toEqual(wanted.sort());
    // A cursor is good for its own filters.
    expect((await search({ customer: '12025550143', cursor: first.nextCursor })).statusCode).toBe(400);
    for (const wrong of [{ customer: '' }, { limit: 0 }, { name: 'Asha' }])
      expect([wrong, (await search(wrong)).statusCode]).toEqual([wrong, 400]);
    expect((await call('POST', `${LIST}/search`)).json().data.length).toBe(2);
    const document = await api.app.inject({ url: '/api/external/openapi.json' });
    const { parameters } = document.json().paths['/api/external/conversations'].get;
    expect(parameters.find(({ name }: { name: string }) => name === 'customer')).toMatchObject({
      schema: { deprecated: true },
    });
  });

  test('shows the conversations of a customer with all numbers, and with one', async () => {
    const { database, ...api } = await startTestApi();
    const { walk } = await apiClient({ database, ...api });
    const first = await addConversation(database, { waId: '12025550143' });
    await execute(
      database,
      `insert into conversations (waba_id, phone_number_id, contact_id)
       select waba_id, '${SECOND_NUMBER}', contact_id from conversations`,
    );
    expect(await walk(`${LIST}?customer=12025550143&limit=1`)).toHaveLength(2);
    const [only, ...others] = await walk(`${LIST}?customer=12025550143&phoneNumberId=${NUMBER}&limit=1`);
    expect([only?.id, others]).toEqual([first, []]);
  });

  test('since shows what was active then or later, to the microsecond', async () => {
    const { database, ...api } = await startTestApi();
    const { page } = await apiClient({ database, ...api });
    for (const at of ['10:00:00.000', '10:00:00.001', '10:00:01.000']) {
      await addConversation(database, { at: new Date(`2026-11-20T${at}Z`) });
    }
    const since = async (time: string) => (await page(`${LIST}?since=2026-11-20T${time}`)).data.length;
    expect(await since('10:00:00Z')).toBe(3);
    expect(await since('10:00:00.001Z')).toBe(2);
    expect(await since('12:00:01%2B02:00')).toBe(1);
    expect(await since('10:00:01.001Z')).toBe(0);
  });

  test('cursors open with the filters and order they were made with only', async () => {
    const { database, ...api } = await startTestApi();
    const { get, page } = await apiClient({ database, ...api });
    for (let n = 0; n < 3; n += 1) await addConversation(database, { at: new Date(Date.now() - 60_000) });
    const url = `${LIST}?limit=1&since=2026-11-20T10:00:00Z`;
    const { nextCursor } = await page(url);
    const status = async (other: string) => (await get(`${other}&cursor=${nextCursor}`)).statusCode;
    expect(await status(url)).toBe(200);
    expect(await status(`${LIST}?limit=2&since=2026-11-20T11:00:00%2B01:00`)).toBe(200);
    for (const other of ['order=asc', 'since=2026-11-20T10:00:01Z', 'limit=1', 'customer=1202&limit=1']) {
      expect([other, await status(`${LIST}?${other}`)]).toEqual([other, 400]);
    }
    for (const wrong of ['since=yesterday', 'since=2026-11-20', 'customer=', 'customer=%00', 'order=up']) {
      expect([wrong, (await get(`${LIST}?${wrong}`)).statusCode]).toEqual([wrong, 400]);
    }
  });
});

test('a list shows of each conversation its own newest message and its window, as the conversation does', async () => {
  const { database, ...api } = await startTestApi();
  const { get, page } = await apiClient({ database, ...api });
  const [quiet, large, busy] = [
    await addConversation(database, { waId: '12025550143' }),
    await addConversation(database, { waId: '12025550144' }),
    await addConversation(database, { waId: '12025550145' }),
  ];
  for (const id of [busy, large]) for (let n = 0; n < 3; n += 1) await addMessage(database, id);
  await execute(database, 'update messages set sent_at = now()');
  const shown = async () => new Map((await page(LIST)).data.map((row) => [row.id, row]));
  for (const [id, row] of await shown()) {
    const { customerServiceWindow, lastMessage } = (await get(`${LIST}/${id}`)).json();
    expect([id, row]).toEqual([id, expect.objectContaining({ customerServiceWindow, lastMessage })]);
    expect([id, lastMessage === null, customerServiceWindow.isOpen]).toEqual([
      id,
      id === quiet,
      id !== quiet,
    ]);
  }
  const content = { type: 'text', text: { body: 'x'.repeat(70_000) } };
  await execute(database, 'update messages set content = :content where conversation_id = :large', {
    content: JSON.stringify(content),
    large,
  });
  const after = await shown();
  expect([after.get(large)?.lastMessage, after.get(busy)?.lastMessage === null]).toEqual([null, false]);
});

describe('a walk over conversations that become active meanwhile', () => {
  test('upwards meets every one, and each again that moved behind its back; downwards all that stood still once', async () => {
    const { database, ...api } = await startTestApi();
    const { page, walk } = await apiClient({ database, ...api });
    const ids: string[] = [];
    for (let n = 0; n < 20; n += 1) {
      ids.push(await addConversation(database, { at: new Date(Date.now() - 86_400_000 + n) }));
    }
    const touch = (indexes: readonly number[]) =>
      database.transaction((trx) =>
        touchConversations(
          trx,
          indexes.map((index) => ids[index] ?? ''),
        ),
      );
    const moves = fc.array(fc.array(fc.nat(19), { minLength: 1, maxLength: 4 }), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(moves, fc.integer({ min: 1, max: 7 }), async (batches, limit) => {
        const moved = new Set<number>();
        const between = (queue: number[][]) => async () => {
          const batch = queue.shift() ?? [];
          for (const index of batch) moved.add(index);
          await touch(batch);
        };
        const down = await walk(`${LIST}?limit=${limit}`, between(structuredClone(batches)));
        const still = ids.filter((_, index) => !moved.has(index));
        for (const id of still) expect(down.filter((row) => row.id === id)).toHaveLength(1);

        const seen: string[] = [];
        let url = `${LIST}?order=asc&limit=${limit}`;
        const queue = structuredClone(batches);
        const awaited = new Set(ids);
        // The list ends a moment before now, so what was touched last shows up a little later.
        for (let turn = 0; turn < 200 && (awaited.size > 0 || queue.length > 0); turn += 1) {
          const { data, nextCursor } = await page(url);
          for (const { id } of data) {
            seen.push(id);
            awaited.delete(id);
          }
          if (nextCursor !== null) url = `${LIST}?order=asc&limit=${limit}&cursor=${nextCursor}`;
          const batch = queue.shift() ?? [];
          await touch(batch);
          for (const index of batch) awaited.add(ids[index] ?? '');
          if (data.length === 0) await new Promise((resolve) => setTimeout(resolve, 50));
        }
        expect([...awaited]).toEqual([]);
        expect(new Set(seen)).toEqual(new Set(ids));
      }),
      { numRuns: 12 },
    );
  });

  test('upwards waits for a transaction that noted its time and has not ended', async () => {
    const { database, ...api } = await startTestApi();
    const { page } = await apiClient({ database, ...api });
    const [slow, quick] = [await addConversation(database), await addConversation(database)];
    const settled = () => new Promise((resolve) => setTimeout(resolve, 150));
    await settled();
    const first = await page(`${LIST}?order=asc`);
    expect(first.data.map(({ id }) => id)).toEqual([slow, quick]);
    const rest = async () =>
      (await page(`${LIST}?order=asc&cursor=${first.nextCursor}`)).data.map(({ id }) => id);
    await database.transaction(async (trx) => {
      await touchConversations(trx, [slow]);
      await database.transaction((other) => touchConversations(other, [quick]));
      await settled();
      // The later time is there already; behind it the earlier one would be missed for ever.
      expect(await rest()).toEqual([]);
    });
    await settled();
    expect(await rest()).toEqual([slow, quick]);
  });
});

describe('one conversation', () => {
  test('shows customer, number, counts, window and newest message', async () => {
    const { database, ...api } = await startTestApi();
    const { get, page } = await apiClient({ database, ...api });
    const id = await addConversation(database, { waId: '12025550143' });
    await addMessage(database, id, { direction: 'outbound' });
    await execute(database, `update messages set sent_at = now()`);
    const closed = (await get(`${LIST}/${id}`)).json();
    expect(closed).toMatchObject({
      customer: { waId: '12025550143', name: 'Asha' },
      phoneNumber: {
        phoneNumberId: NUMBER,
        displayPhoneNumber: '12025550100',
        verifiedName: 'Fixture Store',
      },
      messageCounts: { inbound: 0, outbound: 1, isComplete: true },
      customerServiceWindow: { isOpen: false, expiresAt: null, lastInboundAt: null },
    });
    const written = async (type: string, hoursAgo: number) => {
      const message = await addMessage(database, id, { type });
      const sentAt = new Date(Date.now() - hoursAgo * 3_600_000);
      await execute(database, 'update messages set sent_at = :sentAt where id = :message', {
        sentAt,
        message,
      });
      return { sentAt, shown: (await get(`${LIST}/${id}`)).json() };
    };
    const old = await written('text', 24.01);
    expect(old.shown.customerServiceWindow).toEqual({
      isOpen: false,
      expiresAt: new Date(old.sentAt.getTime() + 86_400_000).toISOString(),
      lastCallAt: null,
      lastInboundAt: old.sentAt.toISOString(),
    });
    // Upstream tells of a new number; the customer wrote nothing.
    expect((await written('system', 0)).shown.customerServiceWindow.isOpen).toBe(false);
    const open = await written('image', 23.99);
    expect(open.shown.customerServiceWindow).toEqual({
      isOpen: true,
      expiresAt: new Date(open.sentAt.getTime() + 86_400_000).toISOString(),
      lastCallAt: null,
      lastInboundAt: open.sentAt.toISOString(),
    });
    // An older one that comes late does not close it.
    const late = await written('text', 30);
    expect(late.shown.customerServiceWindow).toEqual(open.shown.customerServiceWindow);
    expect(late.shown.messageCounts).toEqual({ inbound: 4, outbound: 1, isComplete: true });
    const [newest] = (await page(`${LIST}/${id}/messages`)).data;
    expect(late.shown.lastMessage).toEqual(newest);
    expect((await page(LIST)).data[0]).toEqual(
      Object.fromEntries(Object.keys((await page(LIST)).data[0] ?? {}).map((key) => [key, late.shown[key]])),
    );
    // A time to come counts as that of its arrival.
    const ahead = await written('text', -365 * 24);
    const { expiresAt, isOpen } = ahead.shown.customerServiceWindow;
    expect([isOpen, Date.parse(expiresAt) <= Date.now() + 86_400_000]).toEqual([true, true]);
  });

  test('that was merged answers as the kept one; a foreign one as one that does not exist', async () => {
    const { database, ...api } = await startTestApi();
    const { get } = await apiClient({ database, ...api });
    const [kept, merged] = [await addConversation(database), await addConversation(database)];
    await execute(database, 'update conversations set merged_into = :kept where id = :merged', {
      kept,
      merged,
    });
    expect((await get(`${LIST}/${merged}`)).body).toBe((await get(`${LIST}/${kept}`)).body);
    const foreign = await addConversation(database, { wabaId: OTHER_WABA, phoneNumberId: OTHER_NUMBER });
    for (const id of [foreign, '999999', 'x', '0', '%00', '99999999999999999999']) {
      expect([id, (await get(`${LIST}/${id}`)).statusCode]).toEqual([id, 404]);
    }
    expect((await get(`${LIST}/${kept}`)).json().lastMessage).toBe(null);
  });
});
