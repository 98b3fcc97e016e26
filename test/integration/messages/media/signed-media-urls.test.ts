import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { buildApp } from '../../../../src/api/app.ts';
import { policyDefaults, setTenantPolicy } from '../../../../src/features/accounts/tenant-policies.ts';
import { takePendingMedia } from '../../../../src/features/messages/media/media.ts';
import { makeMediaUrls } from '../../../../src/features/messages/media/media-urls.ts';
import { publishStored } from '../../../../src/features/messages/media/store-media.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { loadConfig } from '../../../../src/platform/config/config.ts';
import { openObjectStore } from '../../../../src/platform/object-store/object-store.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { runAdmin } from '../../../support/admin-cli.ts';
import { silentLogger } from '../../../support/silent-logger.ts';
import { takeIn } from '../../../support/take-in.ts';
import { seedFixtureAccounts, testSecretBox } from '../../../support/test-accounts.ts';
import { testDatabase } from '../../../support/test-database.ts';
import { testSettings } from '../../../support/test-settings.ts';
import { addKey, PUBLIC_URL } from '../../api/api-harness.ts';
import { addUser } from '../../portal/portal-browser.ts';
import { messageBody, WABA } from './media-stack.ts';

/** An API process with one stored file, announced as the worker does. */
async function installation(overrides: Record<string, string> = {}, tenantTtlSeconds: number | null = null) {
  const { database, url } = await testDatabase();
  const tenantId = (await seedFixtureAccounts(database)).get(WABA) ?? '';
  const bucket = { HELIOGRAPH_OBJECT_STORE_BUCKET: `test-${randomBytes(6).toString('hex')}` };
  const settings = testSettings(url, { ...bucket, ...overrides });
  const config = loadConfig(settings);
  const tools = { database, actor: SYSTEM, defaults: policyDefaults(config) };
  if (tenantTtlSeconds !== null)
    await setTenantPolicy(tools, tenantId, { mediaUrlTtlSeconds: tenantTtlSeconds });
  const objectStore = openObjectStore(config.objectStore);
  const app = buildApp({ config, database, objectStore, logger: silentLogger });
  onTestFinished(async () => {
    await app.close();
    objectStore.close();
  });
  const { body, upstreamId } = messageBody({
    type: 'document',
    document: { id: '1', mime_type: 'text/plain' },
  });
  await takeIn(database, body);
  const [row] = await query<{ id: string }>(
    database,
    'select id from messages where upstream_id = :upstreamId',
    { upstreamId },
  );
  const messageId = row?.id ?? '';
  const objectKey = randomBytes(24).toString('base64url');
  const media = await takePendingMedia(database, { wabaId: WABA, messageId, objectKey });
  if (media === null) throw new Error('no media');
  await objectStore.put(objectKey, Readable.from([Buffer.from('hello')]), { contentType: 'text/plain' });
  const fetched = { servedType: 'text/plain', mimeType: 'text/plain', sizeBytes: 5, sha256: 'a'.repeat(64) };
  const mediaUrls = makeMediaUrls({
    database,
    secretBox: testSecretBox,
    publicUrl: config.api.publicUrl,
    ttlSeconds: config.media.urlTtlSeconds,
  });
  await publishStored({ database, mediaUrls }, { wabaId: WABA, messageId }, media, fetched);
  const { authorization } = await addKey(database);
  const get = async (path: string) => await app.inject({ url: path, headers: { authorization } });
  const [event] = await query<{ body: Buffer }>(
    database,
    `select body from events where event_type = 'media.ready'`,
  );
  const ready = JSON.parse(event?.body.toString() ?? '').data as { mediaPath: string; mediaUrl: string };
  const mediaOf = async () => (await get(`/api/external/messages/${messageId}/media`)).json();
  const fetchFile = async (url: string) => await app.inject({ url: url.replace(config.api.publicUrl, '') });
  return { app, database, tenantId, settings, config, objectKey, ready, get, mediaOf, fetchFile, messageId };
}

const codeOf = (answer: { json(): { error: { code: string } } }) => answer.json().error.code;

/** The same key, another end. */
async function urlThatEndsAt(
  stack: Awaited<ReturnType<typeof installation>>,
  ms: number,
  ttlSeconds: number,
) {
  const { database, config, objectKey } = stack;
  const tools = { database, secretBox: testSecretBox, publicUrl: config.api.publicUrl, ttlSeconds };
  const urls = makeMediaUrls(tools, () => ms - ttlSeconds * 1_000);
  return (await urls.linksOf(WABA))(objectKey).mediaUrl;
}

test('without a setting, addresses are plain and do not end, as the spec shows them', async () => {
  const stack = await installation();
  expect(stack.ready.mediaPath).toBe(`/received_media/${stack.objectKey}`);
  expect(stack.ready.mediaUrl).toBe(`https://gateway.example/received_media/${stack.objectKey}`);
  expect((await stack.mediaOf()).mediaUrl).toBe(stack.ready.mediaUrl);
  expect((await stack.fetchFile(stack.ready.mediaUrl)).body).toBe('hello');
});

test.each([
  ['the installation', { HELIOGRAPH_MEDIA_URL_TTL_SECONDS: '3600' }, null],
  ['the tenant', {}, 3_600],
])(
  'where %s says so, addresses are signed, end, and are fresh in every answer',
  async (_, overrides, tenantTtl) => {
    const stack = await installation(overrides, tenantTtl);
    const { ready, fetchFile, mediaOf, objectKey } = stack;
    const { mediaPath, mediaUrl } = await mediaOf();
    for (const url of [ready.mediaUrl, mediaUrl]) {
      expect(url).toMatch(/\?expires=\d+&signature=[\w-]{43}$/);
      expect((await fetchFile(url)).body).toBe('hello');
    }
    expect(mediaUrl).toBe(`https://gateway.example${mediaPath}`);
    expect(ready.mediaUrl).toBe(`https://gateway.example${ready.mediaPath}`);
    const list = (await stack.get(`/api/external/messages/${stack.messageId}`)).json();
    expect((await fetchFile(list.mediaUrl)).statusCode).toBe(200);
    // Ended, plain, of another file, with another end: none of them serves.
    const ended = await fetchFile(await urlThatEndsAt(stack, Date.now() - 2_000, 3_600));
    expect([ended.statusCode, codeOf(ended)]).toEqual([403, 'media_url_expired']);
    const late = mediaUrl.replace(/expires=\d+/, `expires=${Math.ceil(Date.now() / 1_000) + 999_999}`);
    for (const wrong of [
      `/received_media/${objectKey}`,
      late,
      mediaUrl.replace('signature=', 'signature=x'),
      `${mediaPath}&expires=1`,
    ]) {
      const refused = await fetchFile(wrong);
      expect([refused.statusCode, codeOf(refused)]).toEqual([403, 'invalid_media_signature']);
    }
    const other = await fetchFile(mediaPath.replace(objectKey, randomBytes(24).toString('base64url')));
    expect(other.statusCode).toBe(404);
  },
);

test('a tenant may shorten what the installation says, and not lengthen it', async () => {
  const stack = await installation({ HELIOGRAPH_MEDIA_URL_TTL_SECONDS: '600' });
  const { database, tenantId, config, settings } = stack;
  const secondsLeft = async () => {
    const [, expires = '0'] = /expires=(\d+)/.exec((await stack.mediaOf()).mediaUrl) ?? [];
    return Number(expires) - Date.now() / 1_000;
  };
  const set = (value: string) =>
    runAdmin(settings, ['tenant', 'set-policy', tenantId, '--media-url-ttl-seconds', value, '--json']);
  const shorter = await set('120');
  expect(JSON.parse(shorter.stdout)).toMatchObject({
    own: { mediaUrlTtlSeconds: 120 },
    effective: { mediaUrlTtlSeconds: 120 },
  });
  expect(await secondsLeft()).toBeLessThanOrEqual(121);
  const tools = { database, actor: SYSTEM, defaults: policyDefaults(config) };
  await expect(setTenantPolicy(tools, tenantId, { mediaUrlTtlSeconds: 59 })).rejects.toThrow('60 to 600');
  await expect(setTenantPolicy(tools, tenantId, { mediaUrlTtlSeconds: 601 })).rejects.toThrow('60 to 600');
  await set('default');
  expect(await secondsLeft()).toBeGreaterThan(500);
  const audited = await query<{ detail: object }>(
    database,
    `select detail from audit_log where action = 'tenant.policy_changed' order by id`,
  );
  expect(audited.map(({ detail }) => detail)).toEqual([
    { mediaUrlTtlSeconds: 120 },
    { mediaUrlTtlSeconds: null },
  ]);
});

test('administrators set it in the portal, members see it, and the thread shows files with fresh addresses', async () => {
  const stack = await installation({ HELIOGRAPH_PUBLIC_URL: PUBLIC_URL });
  const { app, database, tenantId } = stack;
  const path = `/portal/w/${WABA}/data`;
  const api = { app, database } as Parameters<typeof addUser>[0];
  const admin = await addUser(api, { email: 'admin@store.example', role: 'admin', tenantId });
  const member = await addUser(api, { email: 'member@store.example', role: 'member', tenantId });
  await admin.get(path);
  expect((await admin.post(path, { mediaUrlTtlSeconds: '300' })).headers.location).toBe(`${path}?done=saved`);
  const seen = await member.get(path);
  expect(seen.body).toContain('300 seconds');
  expect(seen.body).not.toContain('name="mediaUrlTtlSeconds"');
  const wrong = await admin.post(path, { mediaUrlTtlSeconds: '7' });
  expect([wrong.statusCode, wrong.body.includes('must be 60 to 31536000 seconds')]).toEqual([422, true]);
  const [conversation] = await query<{ id: string }>(database, 'select id from conversations limit 1');
  const thread = await member.get(`/portal/w/${WABA}/conversations/${conversation?.id}`);
  const [, href = ''] = /href="(\/received_media\/[^"]+)"/.exec(thread.body) ?? [];
  expect((await stack.fetchFile(href.replaceAll('&amp;', '&'))).body).toBe('hello');
});
