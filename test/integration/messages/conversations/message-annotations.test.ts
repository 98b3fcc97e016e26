import { describe, expect, test } from 'vitest';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../../support/take-in.ts';
import { fixtureBody } from '../../../support/upstream-fixtures.ts';
import { apiClient, type Row } from '../../api/api-client.ts';
import { addConversation, addMessage, NUMBER, startTestApi } from '../../api/api-harness.ts';

type Upstream = Record<string, unknown>;

/** The body of a fixture with its message changed. */
function changed(name: string, changes: (message: Upstream) => Upstream): Buffer {
  const body = JSON.parse(fixtureBody(name).toString());
  const { value } = body.entry[0].changes[0];
  value.messages = [changes(value.messages[0])];
  return Buffer.from(JSON.stringify(body));
}

function upstreamMessage(name: string): Upstream & { id: string; timestamp: string } {
  return JSON.parse(fixtureBody(name).toString()).entry[0].changes[0].value.messages[0];
}

const iso = (seconds: string) => new Date(Number(seconds) * 1000).toISOString();

async function conversation() {
  const api = await startTestApi();
  const client = await apiClient(api);
  const messages = async () => {
    const [one] = (await client.page('/api/external/conversations')).data;
    return (await client.page(`/api/external/conversations/${one?.id}/messages?order=asc&limit=100`)).data;
  };
  const byMetaId = async (id: string): Promise<Row> => {
    const found = (await messages()).find((row) => row.metaMessageId === id);
    if (found === undefined) throw new Error(`there is no ${id}`);
    const detail = (await client.get(`/api/external/messages/${found.serviceMessageId}`)).json();
    expect(detail).toMatchObject(found);
    return found;
  };
  return { ...api, ...client, messages, byMetaId };
}

const text = upstreamMessage('in_text');
const reactionTo = (id: string, emoji: string | undefined, more: Upstream = {}) =>
  changed('in_reaction', (message) => ({
    ...message,
    reaction: { message_id: id, ...(emoji !== undefined && { emoji }) },
    ...more,
  }));

describe('reactions', () => {
  test('stand on the message they are on, and their own messages stay in the list', async () => {
    const { database, messages, byMetaId } = await conversation();
    const original = upstreamMessage('in_reaction');
    await takeIn(database, fixtureBody('in_text'), reactionTo(text.id, '👍'));
    const reaction = {
      emoji: '👍',
      from: 'customer',
      at: iso(original.timestamp),
      serviceMessageId: expect.stringMatching(/^\d+$/),
      metaMessageId: original.id,
    };
    expect((await byMetaId(text.id)).reactions).toEqual([reaction]);
    const shown = await messages();
    expect(shown.map(({ type }) => type)).toEqual(['text', 'reaction']);
    expect(shown[1]).toMatchObject({ targetId: text.id, reactions: [] });
  });

  test('before their message is known are on it once it comes', async () => {
    const { database, byMetaId } = await conversation();
    await takeIn(database, reactionTo(text.id, '👍'));
    await takeIn(database, fixtureBody('in_text'));
    expect((await byMetaId(text.id)).reactions).toMatchObject([{ emoji: '👍' }]);
  });

  test('are replaced by the later one by upstream’s clock, whichever came first', async () => {
    const { database, byMetaId } = await conversation();
    await takeIn(database, fixtureBody('in_text'));
    await takeIn(database, reactionTo(text.id, '😮', { id: 'wamid.later', timestamp: '1790000300' }));
    await takeIn(database, reactionTo(text.id, '👍', { id: 'wamid.earlier', timestamp: '1790000290' }));
    expect((await byMetaId(text.id)).reactions).toMatchObject([
      { emoji: '😮', metaMessageId: 'wamid.later' },
    ]);
  });

  test('that are taken back, without an emoji or with an empty one, are gone', async () => {
    for (const emoji of [undefined, '']) {
      const { database, byMetaId, messages } = await conversation();
      await takeIn(database, fixtureBody('in_text'), reactionTo(text.id, '👍'));
      const removal = upstreamMessage('in_reaction_removed_absent');
      await takeIn(database, reactionTo(text.id, emoji, { id: removal.id, timestamp: removal.timestamp }));
      expect((await byMetaId(text.id)).reactions).toEqual([]);
      expect(await messages()).toHaveLength(3);
    }
  });

  test('of the business stand beside the customer’s once upstream has them, and not when they failed', async () => {
    const { database, byMetaId, messages } = await conversation();
    await takeIn(database, fixtureBody('in_text'), reactionTo(text.id, '👍'));
    const [first] = await messages();
    const add = async (emoji: string, upstreamId: string | null, sentAt: string) => {
      const content = JSON.stringify({ type: 'reaction', reaction: { message_id: text.id, emoji } });
      const id = await addMessage(database, String(first?.conversationId), {
        direction: 'outbound',
        type: 'reaction',
        content,
      });
      await execute(
        database,
        'update messages set target_id = :id, upstream_id = :upstreamId, sent_at = :sentAt where id = :id2',
        { id: text.id, upstreamId, sentAt, id2: id },
      );
    };
    await add('❤️', 'wamid.ours', '2026-11-20T10:00:00Z');
    await add('🎉', 'wamid.failed', '2026-11-20T11:00:00Z');
    await add('⏳', null, '2026-11-20T12:00:00Z');
    await execute(
      database,
      `insert into message_states values ('${NUMBER}', 'wamid.failed', 'failed', now())`,
    );
    const { reactions } = await byMetaId(text.id);
    expect(reactions).toMatchObject([
      { emoji: '👍', from: 'customer' },
      { emoji: '❤️', from: 'business', metaMessageId: 'wamid.ours' },
    ]);
  });

  test('by the hundred do not hide those of the other side', async () => {
    const { database, byMetaId, messages } = await conversation();
    await takeIn(database, fixtureBody('in_text'));
    const [first] = await messages();
    const add = `insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, content,
                                       target_id, sent_at)
      select waba_id, phone_number_id, conversation_id, :direction, :direction || g, 'reaction',
             '{"reaction":{"emoji":"' || g || '"}}', upstream_id, now() + g * interval '1 second'
        from messages, generate_series(1, :count) g where id = :id`;
    const id = String(first?.serviceMessageId);
    await execute(database, add, { direction: 'outbound', count: 1, id });
    await execute(database, add, { direction: 'inbound', count: 500, id });
    const { reactions } = await byMetaId(text.id);
    expect(reactions).toMatchObject([
      { emoji: '1', from: 'business' },
      { emoji: '500', from: 'customer' },
    ]);
  });
});

describe('edits and deletions', () => {
  test('show the newest content beside the original, exactly as upstream wrote it', async () => {
    const { database, byMetaId, messages, get } = await conversation();
    const edit = (id: string, timestamp: string, body: string) =>
      changed('in_edit_text', (message) => ({
        ...message,
        id,
        timestamp,
        edit: { original_message_id: text.id, message: { type: 'text', text: { body } } },
      }));
    await takeIn(database, fixtureBody('in_text'));
    expect(await byMetaId(text.id)).not.toHaveProperty('editedAt');
    await takeIn(database, edit('wamid.second', '1790000400', 'second'));
    await takeIn(database, edit('wamid.first', '1790000390', 'first'));
    const shown = await byMetaId(text.id);
    expect(shown).toMatchObject({
      editedAt: iso('1790000400'),
      editedMessage: { type: 'text', text: { body: 'second' } },
      message: text,
    });
    const [, second] = await messages();
    expect(second).toMatchObject({ type: 'edit', targetId: text.id, serviceMessageId: shown.editedBy });
    await execute(database, 'update messages set content = :content where upstream_id = :upstreamId', {
      content: '{"edit":{"message":{"big":12345678901234567890.10}}}',
      upstreamId: 'wamid.second',
    });
    const { body } = await get(`/api/external/messages/${shown.serviceMessageId}`);
    expect(body).toContain('"editedMessage":{"big":12345678901234567890.10},"message":{');
  });

  test('of messages that never came change nothing else', async () => {
    const { database, messages } = await conversation();
    await takeIn(database, fixtureBody('in_text'), fixtureBody('in_edit_text'), fixtureBody('in_revoke'));
    const [first, ...others] = await messages();
    expect(first).not.toHaveProperty('editedAt');
    expect(first).not.toHaveProperty('revokedAt');
    expect(others.map(({ type }) => type)).toEqual(['edit', 'revoke']);
  });

  test('by the customer are dated, and the message stays', async () => {
    const { database, byMetaId } = await conversation();
    const revoke = upstreamMessage('in_revoke');
    const body = changed('in_revoke', (message) => ({
      ...message,
      revoke: { original_message_id: text.id },
    }));
    await takeIn(database, fixtureBody('in_text'), body);
    expect(await byMetaId(text.id)).toMatchObject({ revokedAt: iso(revoke.timestamp), message: text });
  });
});

describe('replies', () => {
  test('name the message they answer by both ids, and null for one that is not known here', async () => {
    const { database, byMetaId, messages } = await conversation();
    const reply = upstreamMessage('in_text_reply_context');
    const { id: answered } = reply.context as { id: string };
    await takeIn(database, fixtureBody('in_text_reply_context'));
    expect((await byMetaId(reply.id)).replyTo).toEqual({ serviceMessageId: null, metaMessageId: answered });
    const [first] = await messages();
    const id = await addMessage(database, String(first?.conversationId), { direction: 'outbound' });
    await execute(database, 'update messages set upstream_id = :answered where id = :id', { answered, id });
    expect(await byMetaId(reply.id)).toMatchObject({
      contextId: answered,
      replyTo: { serviceMessageId: id, metaMessageId: answered },
    });
    const forwarded = upstreamMessage('in_text_forwarded');
    await takeIn(database, fixtureBody('in_text_forwarded'));
    expect(await byMetaId(forwarded.id)).not.toHaveProperty('replyTo');
  });

  test('never name a message of another number or WABA', async () => {
    const { database, byMetaId } = await conversation();
    const reply = upstreamMessage('in_text_reply_context');
    const { id: answered } = reply.context as { id: string };
    await takeIn(database, fixtureBody('in_text_reply_context'));
    const [wabaId, phoneNumberId] = ['900000000000202', '800000000000221'];
    const foreign = await addConversation(database, { wabaId, phoneNumberId });
    const id = await addMessage(database, foreign, { wabaId, phoneNumberId });
    await execute(
      database,
      `update messages set upstream_id = :answered, target_id = :id, type = 'reaction',
              content = '{"reaction":{"emoji":"x"}}' where id = :id2`,
      { answered, id: reply.id, id2: id },
    );
    expect(await byMetaId(reply.id)).toMatchObject({ reactions: [], replyTo: { serviceMessageId: null } });
  });
});

test('the real message that follows a placeholder is listed at its own place, for those who are past the placeholder', async () => {
  const { database, get, page: pageOf } = await conversation();
  const placeholder = changed('in_text', ({ text: _gone, ...message }) => ({
    ...message,
    type: 'unsupported',
    errors: [{ code: 131060, title: 'This message is unavailable' }],
  }));
  await takeIn(database, placeholder);
  const [one] = (await pageOf('/api/external/conversations')).data;
  const page = (search: string) =>
    pageOf(`/api/external/conversations/${one?.id}/messages?order=asc${search}`);
  const first = await page('');
  expect(first.data.map(({ type }) => type)).toEqual(['unsupported']);
  await takeIn(database, fixtureBody('in_text'));
  await takeIn(database, placeholder);
  const next = await page(`&cursor=${first.nextCursor}`);
  const [real] = next.data;
  expect(next.data).toEqual([expect.objectContaining({ type: 'text', message: upstreamMessage('in_text') })]);
  const all = (await page('')).data;
  expect(all).toHaveLength(2);
  const { id: metaMessageId } = text;
  expect(all[0]).toMatchObject({ type: 'unsupported', metaMessageId, supersededBy: real?.serviceMessageId });
  expect(all[1]).toMatchObject({ type: 'text', metaMessageId });
  expect(all[1]).not.toHaveProperty('supersededBy');
  const detail = (await get(`/api/external/messages/${all[0]?.serviceMessageId}`)).json();
  expect(detail).toMatchObject({ metaMessageId, supersededBy: real?.serviceMessageId });
});

test('every fixture message, of unknown types too, is passed through as upstream wrote it', async () => {
  const { database, messages } = await conversation();
  for (const name of ['in_unsupported_typed', 'in_unknown_legacy', 'in_unsupported_legacy_no_detail']) {
    await takeIn(database, fixtureBody(name));
  }
  const poll = changed('in_text', (message) => ({
    ...message,
    id: 'wamid.poll',
    type: 'poll',
    poll: { n: 1 },
  }));
  await takeIn(database, poll);
  const shown = await messages();
  expect(shown.map(({ type, state }) => [type, state])).toEqual([
    ['unsupported', 'received'],
    ['unknown', 'received'],
    ['unsupported', 'received'],
    ['poll', 'received'],
  ]);
  expect(shown[0]?.message).toEqual(upstreamMessage('in_unsupported_typed'));
  expect(shown[3]?.message).toMatchObject({ type: 'poll', poll: { n: 1 } });
});
