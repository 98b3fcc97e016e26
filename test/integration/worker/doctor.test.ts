import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { generate } from 'selfsigned';
import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { startApiProcess } from '../../support/application-process.ts';
import { storeClient } from '../../support/database-scan.ts';
import { startMailServer } from '../../support/mail-server.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededDatabase, testDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const MAIN = new URL('../../../src/main.ts', import.meta.url).pathname;

type Said = { status: string; checks: { name: string; status: string; detail: string; todo?: string }[] };

async function doctor(settings: Record<string, string>, ...options: string[]) {
  const env = { PATH: process.env.PATH ?? '', ...settings };
  return await new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    const child = execFile(
      process.execPath,
      [MAIN, 'doctor', ...options],
      { env },
      (_error, stdout, stderr) => resolve({ code: child.exitCode ?? -1, stdout, stderr }),
    );
  });
}

/** What stands before the API and speaks https, as its public address. */
async function startProxy(target: string): Promise<{ url: string; caFile: string }> {
  const { private: key, cert } = await generate([{ name: 'commonName', value: '127.0.0.1' }], {
    extensions: [{ name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] }],
  });
  const caFile = join(mkdtempSync(join(tmpdir(), 'proxy-')), 'ca.pem');
  writeFileSync(caFile, cert);
  const server = createServer({ key, cert }, async ({ url }, response) => {
    const answer = await fetch(`${target}${url}`);
    response.writeHead(answer.status).end(await answer.text());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    rmSync(dirname(caFile), { recursive: true });
  });
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, caFile };
}

const parsed = (stdout: string) => JSON.parse(stdout) as Said;
const ofName = ({ checks }: Said, name: string) => checks.filter((check) => check.name === name);

test('checks a running installation, and finds what is wrong with what to do', async () => {
  const { database, url } = await seededDatabase(20);
  const bucket = `test-${randomBytes(6).toString('hex')}`;
  const mailServer = await startMailServer();
  onTestFinished(() => mailServer.close());
  const settings = testSettings(url, {
    HELIOGRAPH_OBJECT_STORE_BUCKET: bucket,
    HELIOGRAPH_SMTP_URL: mailServer.url,
    HELIOGRAPH_SMTP_TLS_CA_FILE: mailServer.caFile,
    HELIOGRAPH_MAIL_FROM: 'heliograph@mail.example',
  });
  const worker = startWorkerProcess(settings);
  onTestFinished(() => worker.stop());
  const api = await startApiProcess(settings);
  onTestFinished(() => api.kill());
  await worker.ready();
  const proxy = await startProxy(api.url);
  const running = {
    ...settings,
    HELIOGRAPH_PUBLIC_URL: proxy.url,
    NODE_EXTRA_CA_CERTS: proxy.caFile,
  };
  const { code, stdout } = await doctor(running, '--json');
  const said = parsed(stdout);
  const names = [
    'schema',
    'partitions',
    'clock',
    'workers',
    'intake',
    'deliveries',
    'alerts',
    'quotas',
    'temporal',
    'object store',
    'mail',
    'traces',
  ];
  for (const name of names)
    expect(ofName(said, name), name).toEqual([{ name, status: 'ok', detail: expect.any(String) }]);
  expect(ofName(said, 'public address').map(({ status }) => status)).toEqual(['ok', 'ok']);
  // The fixtures' WABAs have no access token.
  expect(ofName(said, 'upstream')[0]).toMatchObject({
    status: 'fail',
    todo: expect.stringMatching(/^set a token: admin waba set-token --waba \d+$/),
  });
  expect([said.status, code]).toEqual(['fail', 1]);

  await worker.stop();
  await query(database, 'delete from schema_migrations');
  await query(
    database,
    `insert into alerts (id, kind, subject, reason) values (gen_random_uuid(), 'intake_failed', '', '3 bodies failed')`,
  );
  await query(
    database,
    `insert into endpoint_minutes (endpoint_id, minute, successes, failures, total_ms)
     values (:id, date_trunc('minute', now()), 10, 90, 0)`,
    { id: (await addEndpoint(database, '900000000000101', 'https://failing.example/')).id },
  );
  const broken = await doctor({
    ...running,
    HELIOGRAPH_OBJECT_STORE_URL: 'http://127.0.0.1:9',
    HELIOGRAPH_SMTP_URL: mailServer.url.replace(/:[^:@]+@/, ':wrong@'),
    HELIOGRAPH_TRACES_URL: api.url,
  });
  expect(broken.code).toBe(1);
  expect(broken.stdout).toMatch(
    /^fail {2}schema +migrations are missing: 0001-baseline(, \d{4}-[\w-]+)*\n +→ run "heliograph-server migrate"$/m,
  );
  expect(broken.stdout).toMatch(/^fail {2}workers .*\n +→ start "heliograph-server worker"$/m);
  expect(broken.stdout).toMatch(/^fail {2}object store .*\n +→ start the object store/m);
  expect(broken.stdout).toMatch(
    /^warn {2}alerts .*Bodies could not be ingested \(installation\) .*3 bodies failed\n +→ see docs\/operators\/runbooks\.md#bodies-could-not-be-ingested: Read why/m,
  );
  expect(broken.stdout).toMatch(/^warn {2}deliveries .*most attempts fail.*\n +→ "admin top" names/m);
  expect(broken.stdout).toMatch(/^fail {2}mail .*\n +→ correct HELIOGRAPH_SMTP_\*/m);
  expect(broken.stdout).toMatch(/^warn {2}traces .* returns 404\n +→ correct HELIOGRAPH_TRACES_URL/m);
  // Whatever is not ok says what to do, in the line below it.
  expect(broken.stdout).not.toMatch(/^(?:warn|fail) {2}.*\n(?! +→ \S)/m);
});

test('warns about a bucket that keeps versions until a lifecycle rule removes them', async () => {
  const { url } = await testDatabase();
  const settings = testSettings(url, {
    HELIOGRAPH_OBJECT_STORE_BUCKET: `test-${randomBytes(6).toString('hex')}`,
  });
  const { objectStore } = loadConfig(settings);
  const client = storeClient({ objectStore });
  await client.makeBucket(objectStore.bucket);
  await client.setBucketVersioning(objectStore.bucket, { Status: 'Enabled' });
  const found = async () => ofName(parsed((await doctor(settings, '--json')).stdout), 'object store');
  expect(await found()).toEqual([
    {
      name: 'object store',
      status: 'warn',
      detail: 'the bucket keeps versions, and no lifecycle rule removes noncurrent ones',
      todo: expect.stringContaining('NoncurrentVersionExpiration'),
    },
  ]);
  const rule = (prefix: string) => ({
    Rule: [
      {
        ID: 'noncurrent',
        Status: 'Enabled',
        Filter: { Prefix: prefix },
        NoncurrentVersionExpiration: { NoncurrentDays: 1 },
      },
    ],
  });
  await client.setBucketLifecycle(objectStore.bucket, rule('elsewhere/') as never);
  expect(await found()).toMatchObject([{ status: 'warn' }]);
  await client.setBucketLifecycle(objectStore.bucket, rule('') as never);
  expect(await found()).toMatchObject([{ status: 'ok' }]);
});

test('says so when there is no database, or when settings are wrong', async () => {
  const settings = testSettings('postgresql://nobody@127.0.0.1:9/nothing', {
    HELIOGRAPH_TEMPORAL_ADDRESS: '127.0.0.1:9',
  });
  const away = parsed((await doctor(settings, '--json')).stdout);
  for (const name of ['database', 'schema', 'temporal'])
    expect(ofName(away, name)[0]?.status, name).toBe('fail');
  expect(ofName(away, 'database')[0]?.detail).toMatch(/does not answer/);
  const wrong = await doctor({ ...settings, HELIOGRAPH_API_PORT: 'many' }, '--json');
  expect([wrong.code, parsed(wrong.stdout).checks]).toEqual([
    1,
    [
      {
        name: 'settings',
        status: 'fail',
        detail: expect.stringContaining('HELIOGRAPH_API_PORT'),
        todo: expect.any(String),
      },
    ],
  ]);
});
