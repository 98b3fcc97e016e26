import { createHash, randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../../support/take-in.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import {
  downloads,
  eventsOf,
  finished,
  JPEG,
  lookups,
  mediaOf,
  openTasks,
  receive,
  resultOf,
  stack,
  useMediaStack,
} from './inbound-media.ts';
import { messageBody } from './media-stack.ts';

useMediaStack();

/** The address that a lookup gives. */
async function downloadAddress(mediaId: string): Promise<string> {
  const answer = await fetch(`${stack.config.upstream.graphUrl}/v26.0/${mediaId}`, {
    headers: { authorization: 'Bearer EAAG-test-token' },
  });
  const { url } = (await answer.json()) as { url: string };
  return url;
}

describe('inbound media', () => {
  test('is stored byte for byte and announced after its message', async () => {
    const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
    const upstreamId = await receive({ id, sha256, caption: 'Look "here" ✨' });
    const row = await finished(upstreamId);
    const hex = createHash('sha256').update(JPEG).digest('hex');
    expect(row).toMatchObject({
      state: 'stored',
      size_bytes: '2010',
      sha256: hex,
      served_type: 'image/jpeg',
    });
    expect(row.object_key).toMatch(/^[A-Za-z0-9_-]{32}$/);
    expect((await buffer(await stack.objectStore.getRange(row.object_key ?? ''))).equals(JPEG)).toBe(true);
    const [message, ready, ...others] = await eventsOf(upstreamId);
    expect(others).toEqual([]);
    expect([message?.type, ready?.type]).toEqual(['message', 'media.ready']);
    expect(ready).toMatchObject({ eventId: `${upstreamId}_media`, lane: message?.lane });
    expect(JSON.parse(ready?.body ?? '')).toMatchObject({
      eventType: 'media.ready',
      wabaId: stack.wabaId,
      phoneNumberId: stack.number,
      data: {
        metaMessageId: upstreamId,
        serviceMessageId: row.id,
        mediaType: 'image',
        mimeType: 'image/jpeg',
        mediaPath: `/received_media/${row.object_key}`,
        mediaUrl: `https://gateway.example/received_media/${row.object_key}`,
        caption: 'Look "here" ✨',
      },
    });
    expect(await resultOf(row.id)).toMatchObject({ outcome: 'stored' });
    expect(await openTasks()).toBe(0);
  });

  test('of an edited message and of a sticker is media as well', async () => {
    const edit = await receive({ id: '600000000000001', caption: 'better' }, (image) => ({
      type: 'edit',
      edit: { original_message_id: 'wamid.before', message: { type: 'image', image } },
    }));
    const sticker = await receive({ id: '600000000000009', mime_type: 'image/webp' }, (content) => ({
      type: 'sticker',
      sticker: content,
    }));
    expect(await finished(edit)).toMatchObject({ state: 'stored' });
    expect(await finished(sticker)).toMatchObject({ state: 'stored' });
  });

  test('larger than one part of the object store comes through whole', async () => {
    const bytes = randomBytes(12 * 1024 * 1024 + 17);
    const { id, sha256 } = await stack.upload(bytes, 'video/mp4');
    const row = await finished(await receive({ id, sha256 }));
    expect(row).toMatchObject({ state: 'stored', size_bytes: String(bytes.length) });
    expect((await buffer(await stack.objectStore.getRange(row.object_key ?? ''))).equals(bytes)).toBe(true);
  });

  test('is fetched from the address in the webhook without a lookup', async () => {
    const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
    const url = await downloadAddress(id);
    await stack.clearUpstream();
    expect(await finished(await receive({ id, sha256, url }))).toMatchObject({ state: 'stored' });
    const requests = await stack.upstreamRequests();
    expect(lookups(requests)).toEqual([]);
    expect(downloads(requests)).toHaveLength(1);
  });

  test.each([
    ['has ended', (url: string) => url.replace(/ext=\d+/, 'ext=1')],
    ['is at a host that may not see the token', () => 'https://attacker.example/media'],
    ['is no address', () => 'not an address'],
  ])('is looked up when the address in the webhook %s', async (_name, spoil) => {
    const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
    const url = spoil(await downloadAddress(id));
    expect(await finished(await receive({ id, sha256, url }))).toMatchObject({ state: 'stored' });
  });
});

describe('a placeholder whose real message came while its media was fetched', () => {
  test('has its media stored and announced', async () => {
    const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
    await stack.addFault({ match: 'media_lookup', kind: 'status', status: 503, id });
    const { body, upstreamId } = messageBody(
      {
        type: 'image',
        image: { id, sha256, mime_type: 'image/jpeg' },
      },
      stack,
    );
    await takeIn(stack.database, body);
    const { id: messageId } = await mediaOf(upstreamId);
    await query(
      stack.database,
      'update messages set placeholder = true, upstream_id = null, superseded_upstream_id = upstream_id where id = :messageId',
      { messageId },
    );
    await stack.clearUpstream();
    await eventually('the media is stored', async () => {
      const row = await query(
        stack.database,
        'select 1 from media where message_id = :messageId and state = :state',
        { messageId, state: 'stored' },
      );
      return row.length === 1;
    });
    const [ready] = (await eventsOf(upstreamId)).filter(({ type }) => type === 'media.ready');
    expect(JSON.parse(ready?.body ?? '').data).toMatchObject({
      metaMessageId: upstreamId,
      serviceMessageId: messageId,
    });
  });
});

describe('running twice', () => {
  test('changes nothing that was published, and fetches nothing', async () => {
    const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
    const upstreamId = await receive({ id, sha256 });
    const before = await finished(upstreamId);
    await resultOf(before.id);
    await stack.clearUpstream();
    const again = await stack.client.workflow.execute('storeInboundMedia', {
      workflowId: `media/${before.id}`,
      taskQueue: stack.taskQueue,
      args: [{ wabaId: stack.wabaId, messageId: before.id }],
    });
    expect(again).toMatchObject({ outcome: 'finished' });
    expect(await mediaOf(upstreamId)).toEqual(before);
    expect(await eventsOf(upstreamId)).toHaveLength(2);
    expect(await stack.upstreamRequests()).toEqual([]);
  });

  test('for another WABA than the message’s touches nothing', async () => {
    await stack.setAccessToken(null);
    const upstreamId = await receive({ id: '600000000000001' });
    const { id: messageId } = await mediaOf(upstreamId);
    const result = await stack.client.workflow.execute('storeInboundMedia', {
      workflowId: `foreign/${messageId}`,
      taskQueue: stack.taskQueue,
      args: [{ wabaId: '900000000000202', messageId }],
    });
    expect(result).toMatchObject({ outcome: 'finished' });
    expect((await mediaOf(upstreamId)).state).toBe('pending');
    await stack.setAccessToken('EAAG-test-token');
    await finished(upstreamId);
  });
});
