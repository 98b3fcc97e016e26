import { describe, expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { pauseActivity, resetRun, unpauseActivity } from '../../../support/run-buttons.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import {
  downloads,
  eventsOf,
  expectFailed,
  finished,
  JPEG,
  mediaOf,
  openTasks,
  receive,
  resultOf,
  stack,
  stored,
  useMediaStack,
} from './inbound-media.ts';

useMediaStack();

/** Waits until the pending activity of a message's workflow shows a failure of this kind. */
async function pendingFailure(upstreamId: string, expected: RegExp): Promise<void> {
  const { id } = await mediaOf(upstreamId);
  await eventually(`a pending failure ${expected}`, async () => {
    const handle = stack.client.workflow.getHandle(`media/${id}`);
    const { raw } = await handle.describe().catch(() => ({ raw: null }));
    const message = raw?.pendingActivities?.[0]?.lastFailure?.message ?? '';
    expect(message).not.toContain('EAAG');
    return expected.test(message);
  });
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
    await pendingFailure(upstreamId, /WABA \d+ has no upstream access token\. Set one/);
    await stack.setAccessToken('EAAG-ended');
    await pendingFailure(upstreamId, /Session has expired.*valid access token/);
    const noted = await query(
      stack.database,
      'select token_problem from wabas where token_refused_at is not null and waba_id = :wabaId',
      { wabaId: stack.wabaId },
    );
    expect(noted).toEqual([{ token_problem: expect.stringMatching(/./) }]);
    await stack.setAccessToken('EAAG-test-token');
    expect(await finished(upstreamId, 40_000)).toMatchObject({ state: 'stored' });
  });
});

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

  test('media whose webhook names the Graph API: the access token is not spent on an address or an id of its choice', async () => {
    const { graphUrl, graphVersion } = stack.config.upstream;
    await stored();
    await stack.clearUpstream();
    const addresses = [`${stack.wabaId}/phone_numbers`, 'me/businesses?limit=500', 'debug_token'];
    for (const address of addresses) {
      const url = `${graphUrl}/${graphVersion}/${address}`;
      const failed = await finished(await receive({ id: `me%2f${address.slice(0, 2)}`, url }), 30_000);
      expect(failed).toMatchObject({ state: 'failed', error_code: 'media_gone', object_key: null });
    }
    // Whether the token is good is seen by media that is there.
    const asked = await stack.upstreamRequests();
    expect(asked.filter((request) => !/^GET \/v26\.0\/\d+ 200$/.test(request))).toEqual([]);
  });

  test('an answer of text or JSON that was not declared, which leaves no object', async () => {
    const json = Buffer.from('{"data":[{"id":"1"}]}');
    const { id, sha256 } = await stack.upload(json, 'application/json');
    const failed = await finished(await receive({ id, sha256, mime_type: 'image/jpeg' }), 30_000);
    expect(failed).toMatchObject({ state: 'failed', error_code: 'media_hash_mismatch' });
    const declared = await receive({ id, sha256, mime_type: 'application/json' });
    expect(await finished(declared)).toMatchObject({ state: 'stored' });
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
      `update media set created_at = now() - interval '8 days' where message_id = :id`,
      { id: (await mediaOf(upstreamId)).id },
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

describe('a button of the Temporal UI', () => {
  test('Pause holds the next attempt back until the activity goes on', async () => {
    const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
    await stack.addFault({ match: 'media_lookup', kind: 'status', status: 503, id });
    const upstreamId = await receive({ id, sha256 });
    await pendingFailure(upstreamId, /Service temporarily unavailable/);
    const run = `media/${(await mediaOf(upstreamId)).id}`;
    await pauseActivity(stack.client, run);
    // An attempt that was under way when it was paused.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await stack.clearUpstream();
    await new Promise((resolve) => setTimeout(resolve, 8_000));
    expect(await stack.upstreamRequests()).toEqual([]);
    expect((await mediaOf(upstreamId)).state).toBe('pending');
    await unpauseActivity(stack.client, run);
    expect(await finished(upstreamId)).toMatchObject({ state: 'stored' });
  });

  test('Reset fetches on while media is pending, and announces nothing again once it is stored', async () => {
    const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
    await stack.addFault({ match: 'media_lookup', kind: 'status', status: 503, id });
    const upstreamId = await receive({ id, sha256 });
    await pendingFailure(upstreamId, /Service temporarily unavailable/);
    const row = await mediaOf(upstreamId);
    await resetRun(stack.client, `media/${row.id}`);
    await stack.clearUpstream();
    const { object_key } = await finished(upstreamId);
    expect(await resultOf(row.id)).toMatchObject({ outcome: 'stored' });
    await resetRun(stack.client, `media/${row.id}`);
    expect(await resultOf(row.id)).toMatchObject({ outcome: 'finished' });
    expect(await mediaOf(upstreamId)).toMatchObject({ state: 'stored', object_key });
    expect((await eventsOf(upstreamId)).map(({ type }) => type)).toEqual(['message', 'media.ready']);
    expect(await openTasks()).toBe(0);
  });
});
