import { describe, expect, test } from 'vitest';
import { listConversationMessages } from '../../../../src/features/messages/conversations/message-list.ts';
import {
  drawMessageIds,
  insertOutboundMessages,
} from '../../../../src/features/messages/send/outbound-messages.ts';
import {
  followPhoneAlias,
  lockRecipientConversation,
} from '../../../../src/features/messages/send/recipient-conversations.ts';
import { insertBodies } from '../../../../src/ingest/intake/store-bodies.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { drainInbox, takeIn } from '../../../support/take-in.ts';
import { seededDatabase } from '../../../support/test-database.ts';
import { NUMBER, WABA } from './sending-stack.ts';

function inbound(n: number, waId: string, userId?: string): Buffer {
  const message = {
    from: waId,
    id: `wamid.in-${waId}-${n}`,
    timestamp: '1790000000',
    type: 'text',
    text: { body: String(n) },
  };
  const contact = {
    profile: { name: 'Asha' },
    wa_id: waId,
    ...(userId === undefined ? {} : { user_id: userId }),
  };
  const value = {
    messaging_product: 'whatsapp',
    metadata: { display_phone_number: '12025550100', phone_number_id: NUMBER },
    contacts: [contact],
    messages: [message],
  };
  const entry = [{ id: WABA, changes: [{ field: 'messages', value }] }];
  return Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }));
}

async function outbound(database: Database, waId: string, holdMs = 0): Promise<string> {
  return await database.transaction(async (trx) => {
    const conversationId = await lockRecipientConversation(trx, WABA, NUMBER, { waId, userId: null });
    const [id = ''] = await drawMessageIds(trx, 1);
    const base = { id, wabaId: WABA, phoneNumberId: NUMBER, conversationId, type: 'text', content: '{}' };
    const none = { contextId: null, targetId: null, mediaIds: [], payment: null, apiKeyId: null };
    const upstreamPath = 'messages';
    await insertOutboundMessages(trx, [{ ...base, recipient: waId, ...none, upstreamPath }]);
    await new Promise((resolve) => setTimeout(resolve, holdMs));
    return conversationId;
  });
}

describe('a conversation with messages in both directions at once', () => {
  test('shows its follower by ascending id every message, and none twice', async () => {
    const { database } = await seededDatabase(20);
    const waId = '12025550188';
    const conversationId = await outbound(database, waId);
    let writing = true;
    const seen: string[] = [];
    const follow = async () => {
      const afterId = seen.at(-1) ?? null;
      const page = await listConversationMessages(database, WABA, conversationId, {
        order: 'asc',
        afterId,
        limit: 100,
      });
      seen.push(...(page?.messages ?? []).map((message) => message.id));
    };
    const follower = (async () => {
      while (writing) await follow();
    })();
    const senders = Array.from({ length: 4 }, async (_, sender) => {
      for (let n = 0; n < 15; n += 1) await outbound(database, waId, (n + sender) % 4);
    });
    const intake = (async () => {
      for (let n = 0; n < 40; n += 1) await takeIn(database, inbound(n, waId));
    })();
    await Promise.all([...senders, intake]);
    writing = false;
    await follower;
    await follow();
    const all = await query<{ id: string }>(database, 'select id from messages order by id');
    expect(all).toHaveLength(101);
    expect(seen).toEqual(all.map(({ id }) => id));
  });

  test('with customers that nobody knows yet, in both directions at once: one conversation each', async () => {
    const { database } = await seededDatabase(20);
    const phones = Array.from({ length: 12 }, (_, n) => `1202555${2_000 + n}`);
    await insertBodies(
      database,
      phones.map((phone, n) => inbound(n, phone)),
    );
    await Promise.all([
      drainInbox(database),
      ...phones.flatMap((phone) => [outbound(database, phone), outbound(database, phone)]),
    ]);
    const rows = await query<{ contacts: string; conversations: string; failed: string }>(
      database,
      `select (select count(*) from contacts) as contacts, (select count(*) from conversations) as conversations,
              (select count(*) from inbox where state <> 'done') as failed`,
    );
    expect(rows).toEqual([{ contacts: '12', conversations: '12', failed: '0' }]);
  });

  test('that turns out to be another one takes its messages along', async () => {
    const { database } = await seededDatabase();
    // Upstream knows +55 11 98765-4321 without the 9.
    await takeIn(database, inbound(1, '551187654321'));
    const assumed = await outbound(database, '5511987654321');
    await database.transaction((trx) => followPhoneAlias(trx, WABA, '5511987654321', '551187654321'));
    const next = await outbound(database, '5511987654321');
    const page = { order: 'asc' as const, afterId: null, limit: 10 };
    const kept = await listConversationMessages(database, WABA, next, page);
    expect(kept?.messages.map(({ direction }) => direction)).toEqual(['inbound', 'outbound', 'outbound']);
    expect(await listConversationMessages(database, WABA, assumed, page)).toEqual(kept);
    const contacts = await query(database, 'select wa_id from contacts');
    expect(contacts).toEqual([{ wa_id: '551187654321' }]);
  });

  test('whose customer nobody knew yet gets the phone that upstream knows', async () => {
    const { database } = await seededDatabase();
    const before = await outbound(database, '5511987654321');
    await database.transaction((trx) => followPhoneAlias(trx, WABA, '5511987654321', '551187654321'));
    await takeIn(database, inbound(1, '551187654321'));
    expect(await outbound(database, '5511987654321')).toBe(before);
    expect(await outbound(database, '551187654321')).toBe(before);
  });
});
