import { randomBytes } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { buildApp } from '../../../src/api/app.ts';
import { policyDefaults, setTenantPolicy } from '../../../src/features/accounts/tenant-policies.ts';
import { readQuotaUse, readTenantUsage } from '../../../src/features/accounts/tenant-usage.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { runAdmin } from '../../support/admin-cli.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { takeIn } from '../../support/take-in.ts';
import { testSettings } from '../../support/test-settings.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { addKey, PUBLIC_URL } from '../api/api-harness.ts';
import { type MediaStack, messageBody, startMediaStack } from '../messages/media/media-stack.ts';
import { addUser } from '../portal/portal-browser.ts';

const JPEG = Buffer.concat([Buffer.from('ffd8ffe000104a464946', 'hex'), randomBytes(1_990)]);

let stack: MediaStack;
let app: FastifyInstance;
let tenant: Awaited<ReturnType<MediaStack['newTenant']>>;
let authorization: string;

beforeAll(async () => {
  stack = await startMediaStack();
  const { config, database, objectStore } = stack;
  app = buildApp({ config, database, objectStore, logger: silentLogger });
  await app.ready();
});
afterAll(async () => {
  await app?.close();
  await stack?.stop();
});
beforeEach(async () => {
  tenant = await stack.newTenant();
  ({ authorization } = await addKey(stack.database, tenant.wabaId));
});

type Quotas = Parameters<typeof setTenantPolicy>[2];

/** For the test only, since the figure of the installation is that of all tenants. */
async function quotas(wanted: Quotas) {
  const { tenantId } = tenant;
  const tools = { database: stack.database, actor: SYSTEM, defaults: policyDefaults(stack.config) };
  await setTenantPolicy(tools, tenantId, wanted);
  const none = { storedBytesQuota: null, uploadFilesPerDay: null, uploadBytesPerDay: null };
  onTestFinished(async () => {
    await setTenantPolicy(tools, tenantId, none);
  });
}

async function upload(sizeBytes: number) {
  const head =
    '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\n';
  const headers = { authorization, 'content-type': 'multipart/form-data; boundary=b' };
  const payload = `${head}${'x'.repeat(sizeBytes)}\r\n--b--\r\n`;
  const answer = await app.inject({ method: 'POST', url: '/api/external/media', headers, payload });
  return { status: answer.statusCode, headers: answer.headers, body: answer.json() };
}

const usage = () => readTenantUsage(stack.database, tenant.tenantId);
const shownUsage = async () =>
  (await app.inject({ url: '/api/external/usage', headers: { authorization } })).json();

/** A message with a picture, and what came of it. */
async function receive() {
  const file = await stack.upload(JPEG, 'image/jpeg');
  const image = { id: file.id, mime_type: 'image/jpeg' };
  const { body, upstreamId } = messageBody({ type: 'image', image }, tenant);
  await takeIn(stack.database, body);
  const mediaOf = async () => {
    const [row] = await query<{ id: string; state: string; code: string | null }>(
      stack.database,
      'select m.id, d.state, d.error_code as code from messages m join media d on d.message_id = m.id where m.upstream_id = :upstreamId',
      { upstreamId },
    );
    return row;
  };
  await eventually('stored or failed', async () => (await mediaOf())?.state !== 'pending');
  const events = await query<{ type: string }>(
    stack.database,
    'select event_type as type from events where event_id in (:upstreamId, :upstreamId2) order by sequence',
    { upstreamId, upstreamId2: `${upstreamId}_media` },
  );
  return { ...(await mediaOf()), events: events.map(({ type }) => type) };
}

test('without quotas files are counted, and everything that removes one counts it back', async () => {
  expect(await usage()).toEqual({ storedBytes: 0, storedFiles: 0, uploadedBytes: 0, uploadedFiles: 0 });
  const first = await upload(100);
  expect(first.status).toBe(201);
  const picture = await receive();
  expect(picture.events).toEqual(['message', 'media.ready']);
  expect(await usage()).toMatchObject({
    storedBytes: 100 + JPEG.length,
    storedFiles: 2,
    uploadedBytes: 100,
    uploadedFiles: 1,
  });
  await app.inject({
    method: 'DELETE',
    url: `/api/external/media/${first.body.id}`,
    headers: { authorization },
  });
  expect(await usage()).toMatchObject({ storedBytes: JPEG.length, storedFiles: 1 });
  await query(stack.database, 'delete from media where message_id = :id', { id: picture.id ?? '' });
  expect(await usage()).toMatchObject({ storedBytes: 0, storedFiles: 0, uploadedFiles: 1 });
  expect(await shownUsage()).toEqual({
    stored: { files: 0, bytes: 0, maxBytes: null },
    uploadedToday: { files: 1, maxFiles: null, bytes: 100, maxBytes: null },
    keptDays: { messages: null, media: null, events: 90, audit: null },
    mediaUrlTtlSeconds: null,
  });
  expect(await readQuotaUse(stack.database)).toBe(0);
});

test('an upload over the quota of stored bytes is refused with 413, and leaves nothing', async () => {
  await quotas({ storedBytesQuota: 150 });
  expect((await upload(100)).status).toBe(201);
  const before = await usage();
  const refused = await upload(51);
  expect([refused.status, refused.body.error.code]).toEqual([413, 'storage_quota_exceeded']);
  expect(await usage()).toEqual(before);
  const open = `select 1 from media_uploads where state = 'uploading' and waba_id = :wabaId`;
  expect(await query(stack.database, open, { wabaId: tenant.wabaId })).toEqual([]);
  expect((await upload(50)).status).toBe(201);
  expect((await shownUsage()).stored).toMatchObject({ bytes: 150, maxBytes: 150 });
  expect(await readQuotaUse(stack.database)).toBe(1);
});

test.each([
  ['files', { uploadFilesPerDay: 1 }],
  ['bytes', { uploadBytesPerDay: 10 }],
])('uploads over the %s of a day are refused with 429 until midnight UTC', async (_, wanted) => {
  await quotas(wanted);
  expect((await upload(10)).status).toBe(201);
  const refused = await upload(1);
  expect([refused.status, refused.body.error.code]).toEqual([429, 'upload_quota_exceeded']);
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(86_400);
  const dayBefore = 'update tenant_usage set upload_day = upload_day - 1 where tenant_id = :tenantId';
  await query(stack.database, dayBefore, { tenantId: tenant.tenantId });
  expect((await upload(1)).status).toBe(201);
  expect(await usage()).toMatchObject({ uploadedFiles: 1, uploadedBytes: 1 });
});

test('how much of its quotas a tenant uses is shown to it, to operators on its page, and by command', async () => {
  const { tenantId, wabaId } = tenant;
  await quotas({ storedBytesQuota: 10_240, uploadFilesPerDay: 40 });
  expect((await upload(1)).status).toBe(201);
  await query(
    stack.database,
    `update tenant_usage set stored_bytes = 5120, stored_files = 3, uploaded_files = 30, uploaded_bytes = 2048
      where tenant_id = :tenantId`,
    { tenantId },
  );
  const settings = testSettings(stack.config.database.url, { HELIOGRAPH_PUBLIC_URL: PUBLIC_URL });
  const { database, objectStore } = stack;
  const portal = buildApp({ config: loadConfig(settings), database, objectStore, logger: silentLogger });
  onTestFinished(() => portal.close());
  const api = { app: portal, database };
  const member = await addUser(api, { email: 'member@store.example', role: 'member', tenantId });
  const operator = await addUser(api, { email: 'ops@gateway.example', role: 'operator', tenantId: null });
  const pages = [
    await member.get(`/portal/w/${wabaId}/data`),
    await operator.get(`/portal/operator/tenants/${tenantId}/data`),
  ];
  for (const { body } of pages) {
    expect(body).toMatch(
      /<progress max="10240" value="5120"[^>]*>50\u00a0%<\/progress> 5 KiB of 10 KiB \(50\u00a0%\)/,
    );
    expect(body).toContain('30 of 40 (75\u00a0%)');
    expect(body).toContain('2 KiB, no quota');
  }
  const [json, table] = await Promise.all([
    runAdmin(settings, ['tenant', 'usage', '--json', '--limit', '1']),
    runAdmin(settings, ['tenant', 'usage']),
  ]);
  expect(JSON.parse(json.stdout)).toEqual([
    {
      userId: Number(tenantId),
      businessName: 'Fixture Store',
      share: 0.75,
      storedBytes: 5_120,
      storedFiles: 3,
      uploadedBytes: 2_048,
      uploadedFiles: 30,
      storedBytesQuota: 10_240,
      uploadFilesPerDay: 40,
      uploadBytesPerDay: null,
    },
  ]);
  expect(table.stdout).toMatch(/Fixture Store +3 +5120 of 10240 +30 of 40 +2048 +75 %\n/);
});

test('two uploads at the same time do not both get the last place', async () => {
  await quotas({ uploadFilesPerDay: 1 });
  const statuses = (await Promise.all([upload(5), upload(5), upload(5)])).map(({ status }) => status);
  expect(statuses.toSorted()).toEqual([201, 429, 429]);
  expect((await usage()).uploadedFiles).toBe(1);
});

test('a received file over the quota is not stored: its message stays, says why, and no media.ready follows', async () => {
  await quotas({ storedBytesQuota: JPEG.length - 1 });
  const { id, state, code, events } = await receive();
  expect([state, code, events]).toEqual(['failed', 'storage_quota_exceeded', ['message']]);
  expect(await usage()).toMatchObject({ storedBytes: 0, storedFiles: 0 });
  const media = await app.inject({ url: `/api/external/messages/${id}/media`, headers: { authorization } });
  expect(media.json()).toMatchObject({
    mediaPending: false,
    mediaUrl: null,
    mediaError: { code: 'storage_quota_exceeded' },
  });
  // The task has ended: nothing tries again.
  const tasks = 'select 1 from workflow_tasks where waba_id = :wabaId';
  expect(await query(stack.database, tasks, { wabaId: tenant.wabaId })).toEqual([]);
});
