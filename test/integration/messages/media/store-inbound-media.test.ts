import { createHash, randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { MediaResult } from '../../../../src/activities/store-inbound-media.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../../support/take-in.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { type MediaStack, messageBody, startMediaStack, WABA } from './media-stack.ts';

const JPEG = Buffer.concat([Buffer.from('ffd8ffe000104a464946', 'hex'), randomBytes(2_000)]);

let stack: MediaStack;

beforeAll(async () => {
  stack = await startMediaStack();
}, 60_000);
afterAll(() => stack?.stop());
beforeEach(() => stack.clearUpstream());

type MediaRow = {
  id: string;
  state: string;
  object_key: string | null;
  served_type: string | null;
  size_bytes: string | null;
  sha256: string | null;
  error_code: string | null;
  error_message: string | null;
};

async function mediaOf(upstreamId: string): Promise<MediaRow> {
  const [row] = await query<MediaRow>(
    stack.database,
    'select m.id, d.* from messages m join media d on d.message_id = m.id where m.upstream_id = ?',
    [upstreamId],
  );
  if (row === undefined) throw new Error(`no media of ${upstreamId}`);
  return row;
}

async function eventsOf(upstreamId: string) {
  return await query<{ type: string; eventId: string; lane: string; body: string }>(
    stack.database,
    `select event_type as type, event_id as "eventId", lane, convert_from(body, 'UTF8') as body
       from events where event_id in (?, ?) order by sequence`,
    [upstreamId, `${upstreamId}_media`],
  );
}

async function openTasks(): Promise<number> {
  return (
    await query(stack.database, "select 1 from workflow_tasks where workflow_type = 'storeInboundMedia'")
  ).length;
}

/** Takes in a message with this media and returns its upstream id. */
async function receive(
  media: Record<string, unknown>,
  wrap: (content: object) => Record<string, unknown> = (image) => ({ type: 'image', image }),
): Promise<string> {
  const { body, upstreamId } = messageBody(wrap({ mime_type: 'image/jpeg', ...media }));
  await takeIn(stack.database, body);
  return upstreamId;
}

async function finished(upstreamId: string, timeoutMs = 20_000): Promise<MediaRow> {
  await eventually(
    'media is stored or failed',
    async () => (await mediaOf(upstreamId)).state !== 'pending',
    timeoutMs,
  );
  return await mediaOf(upstreamId);
}

/** Media that upstream has and that is stored. */
async function stored(): Promise<void> {
  const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
  expect(await finished(await receive({ id, sha256 }))).toMatchObject({ state: 'stored' });
}

async function resultOf(messageId: string): Promise<MediaResult> {
  return (await stack.client.workflow.getHandle(`media/${messageId}`).result()) as MediaResult;
}

async function expectFailed(upstreamId: string, code: string): Promise<MediaRow> {
  const row = await finished(upstreamId);
  expect(row).toMatchObject({ state: 'failed', error_code: code, object_key: null });
  expect(row.error_message).toMatch(/\w+ \w+/);
  expect(await resultOf(row.id)).toMatchObject({ outcome: 'failed', code });
  expect((await eventsOf(upstreamId)).map(({ type }) => type)).toEqual(['message']);
  expect(await openTasks()).toBe(0);
  return row;
}

const downloads = (requests: string[]) => requests.filter((request) => request.includes('/media-download/'));
const lookups = (requests: string[]) => requests.filter((request) => request.includes('/v26.0/'));

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
      wabaId: WABA,
      phoneNumberId: '800000000000111',
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

/** The address that a lookup gives. */
async function downloadAddress(mediaId: string): Promise<string> {
  const answer = await fetch(`${stack.config.upstream.graphUrl}/v26.0/${mediaId}`, {
    headers: { authorization: 'Bearer EAAG-test-token' },
  });
  const { url } = (await answer.json()) as { url: string };
  return url;
}

describe('trouble that passes', () => {
  test.each([
    ['an outage of the lookup', { match: 'media_lookup', kind: 'status', status: 503, times: 2 }],
    ['a rate limit', { match: 'media_lookup', kind: 'status', status: 400, code: 80007, times: 1 }],
    ['an outage of the download', { match: 'media_download', kind: 'status', status: 500, times: 1 }],
    ['a connection cut in the middle', { match: 'media_download', kind: 'reset', times: 1 }],
    ['an address that has ended already', { match: 'media_lookup', kind: 'expired', times: 1 }],
    ['wrong bytes twice', { match: 'media_download', kind: 'wrong_hash', times: 2 }],
    ['one answer that it is gone', { match: 'media_lookup', kind: 'gone', times: 1 }],
    ['a body that never ends', { match: 'media_download', kind: 'endless', times: 1 }],
  ] as const)('%s costs time only', async (_name, fault) => {
    const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
    await stack.addFault({ ...fault, id });
    const upstreamId = await receive({ id, sha256 });
    expect(await finished(upstreamId)).toMatchObject({ state: 'stored' });
    expect((await eventsOf(upstreamId)).map(({ type }) => type)).toEqual(['message', 'media.ready']);
  });

  test('a digest that only the lookup gets wrong is no trouble, for the webhook is signed', async () => {
    const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
    await stack.addFault({ match: 'media_lookup', kind: 'wrong_hash', id });
    expect(await finished(await receive({ id, sha256 }))).toMatchObject({ state: 'stored' });
  });

  test('media that seems gone while other media of the WABA cannot be read either is asked for until it can', async () => {
    await stored();
    const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
    await stack.addFault({ match: 'media_lookup', kind: 'gone' });
    const upstreamId = await receive({ id, sha256 });
    await eventually('more answers than are believed', async () => {
      return (await stack.upstreamRequests()).filter((request) => request.includes(id)).length >= 3;
    });
    await pendingFailure(upstreamId, /access token has a permission/);
    expect((await mediaOf(upstreamId)).state).toBe('pending');
    await stack.clearUpstream();
    expect(await finished(upstreamId)).toMatchObject({ state: 'stored' });
  });

  test('an object store that is away is waited for, and nothing is announced before', async () => {
    const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
    stack.useStore(null);
    const upstreamId = await receive({ id, sha256 });
    await pendingFailure(upstreamId, /object store is not available/);
    expect((await mediaOf(upstreamId)).state).toBe('pending');
    stack.useStore(stack.objectStore);
    expect(await finished(upstreamId)).toMatchObject({ state: 'stored' });
  });

  test('without an access token the operator reads what to do, and with one the media comes', async () => {
    await stack.setAccessToken(null);
    const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
    const upstreamId = await receive({ id, sha256 });
    await pendingFailure(upstreamId, /WABA 900000000000101 has no upstream access token\. Set one/);
    await stack.setAccessToken('EAAG-ended');
    await pendingFailure(upstreamId, /Session has expired.*valid access token/);
    const noted = await query(
      stack.database,
      'select token_problem from wabas where token_refused_at is not null',
    );
    expect(noted).toEqual([{ token_problem: expect.stringMatching(/./) }]);
    await stack.setAccessToken('EAAG-test-token');
    expect(await finished(upstreamId, 40_000)).toMatchObject({ state: 'stored' });
  });
});

/** Waits until the pending activity of a message's workflow shows a failure of this kind. */
async function pendingFailure(upstreamId: string, expected: RegExp): Promise<void> {
  const { id } = await mediaOf(upstreamId);
  await eventually(
    `a pending failure ${expected}`,
    async () => {
      const handle = stack.client.workflow.getHandle(`media/${id}`);
      const { raw } = await handle.describe().catch(() => ({ raw: null }));
      const message = raw?.pendingActivities?.[0]?.lastFailure?.message ?? '';
      expect(message).not.toContain('EAAG');
      return expected.test(message);
    },
    30_000,
  );
}

describe('answers that are final', () => {
  test('media that upstream has not any more', async () => {
    await stored();
    await stack.clearUpstream();
    const upstreamId = await receive({ id: '691111111111111111' });
    await expectFailed(upstreamId, 'media_gone');
    const asked = (await stack.upstreamRequests()).filter((request) =>
      request.includes('691111111111111111'),
    );
    expect(asked).toHaveLength(2);
  });

  test('media that is too large, by what the lookup says', async () => {
    const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
    await stack.addFault({ match: 'media_lookup', kind: 'too_large', id });
    await expectFailed(await receive({ id, sha256 }), 'media_too_large');
    expect(downloads(await stack.upstreamRequests())).toEqual([]);
  });

  test('wrong bytes at three downloads, which leave no object', async () => {
    const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
    await stack.addFault({ match: 'media_download', kind: 'wrong_hash', id });
    const upstreamId = await receive({ id, sha256 });
    await expectFailed(upstreamId, 'media_hash_mismatch');
    expect(downloads(await stack.upstreamRequests())).toHaveLength(3);
  });

  test('media that could not be had for 7 days', async () => {
    const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
    await stack.addFault({ match: 'media_lookup', kind: 'status', status: 503, id });
    const upstreamId = await receive({ id, sha256 });
    await query(
      stack.database,
      `update media set created_at = now() - interval '8 days' where message_id = ?`,
      [(await mediaOf(upstreamId)).id],
    );
    await expectFailed(upstreamId, 'media_expired');
  });

  test('a workflow that an operator cancels', async () => {
    const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
    await stack.addFault({ match: 'media_lookup', kind: 'status', status: 503, id });
    const upstreamId = await receive({ id, sha256 });
    await pendingFailure(upstreamId, /Service temporarily unavailable/);
    await stack.client.workflow.getHandle(`media/${(await mediaOf(upstreamId)).id}`).cancel();
    await expectFailed(upstreamId, 'media_cancelled');
  });
});

describe('a placeholder whose real message came while its media was fetched', () => {
  test('has its media stored and announced', async () => {
    const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
    await stack.addFault({ match: 'media_lookup', kind: 'status', status: 503, id });
    const { body, upstreamId } = messageBody({
      type: 'image',
      image: { id, sha256, mime_type: 'image/jpeg' },
    });
    await takeIn(stack.database, body);
    const { id: messageId } = await mediaOf(upstreamId);
    await query(
      stack.database,
      'update messages set placeholder = true, upstream_id = null, superseded_upstream_id = upstream_id where id = ?',
      [messageId],
    );
    await stack.clearUpstream();
    await eventually('the media is stored', async () => {
      const row = await query(stack.database, 'select 1 from media where message_id = ? and state = ?', [
        messageId,
        'stored',
      ]);
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
      args: [{ wabaId: WABA, messageId: before.id }],
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
