import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { Client } from 'minio';
import { afterEach, describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { ensureBinaries } from '../../../../dev/embedded/binaries.ts';
import { startMinio } from '../../../../dev/embedded/minio.ts';
import { findFreePorts } from '../../../../dev/embedded/ports.ts';
import { createSupervisor } from '../../../../dev/embedded/supervisor.ts';
import { loadConfig } from '../../../../src/platform/config/config.ts';
import { PART_BYTES } from '../../../../src/platform/object-store/multipart-upload.ts';
import { openObjectStore } from '../../../../src/platform/object-store/object-store.ts';
import { ObjectStoreUnavailable } from '../../../../src/platform/object-store/store-errors.ts';
import { listenInTest } from '../../../support/listen.ts';
import { testSettings } from '../../../support/test-settings.ts';

const options = { contentType: 'text/plain' };

function open(overrides: Record<string, string>) {
  const { objectStore } = loadConfig({ ...testSettings('postgres://unused@127.0.0.1/unused'), ...overrides });
  const store = openObjectStore(objectStore);
  onTestFinished(() => store.close());
  return { store, bucket: objectStore.bucket };
}

function openByRole(overrides: Record<string, string> = {}) {
  return open({
    HELIOGRAPH_OBJECT_STORE_CREDENTIALS: 'role',
    HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: '',
    HELIOGRAPH_OBJECT_STORE_SECRET_KEY: '',
    HELIOGRAPH_OBJECT_STORE_BUCKET: `role-${randomBytes(6).toString('hex')}`,
    ...overrides,
  });
}

async function* text(value: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(value);
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

async function serve(handler: Handler): Promise<string> {
  const server = createServer(handler);
  const port = await listenInTest(server);
  return `http://127.0.0.1:${port}`;
}

/** What AWS's services answer with, by the names that they use. */
function awsCredentials(token: string, validMs = 3_600_000) {
  const { minioAccessKey, minioSecretKey } = inject('infrastructure');
  const Expiration = new Date(Date.now() + validMs).toISOString();
  return { AccessKeyId: minioAccessKey, SecretAccessKey: minioSecretKey, Token: token, Expiration };
}

/** MinIO refuses tokens that it has not given: a store that takes any, and keeps them. */
async function anyTokenStore(): Promise<{ url: string; tokens: Set<string> }> {
  const tokens = new Set<string>();
  const objects = new Map<string, Buffer>();
  const url = await serve(async (request, response) => {
    tokens.add(String(request.headers['x-amz-security-token']));
    const path = request.url ?? '';
    if (request.method === 'PUT') objects.set(path, await buffer(request));
    response.setHeader('etag', '"etag"').end(objects.get(path));
  });
  return { url, tokens };
}

/** No credentials of the machine that runs the tests. */
function awsEnvironment(variables: Record<string, string>): void {
  for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) vi.stubEnv(name, undefined);
  const nowhere = join(tmpdir(), 'no-such-file');
  vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', nowhere);
  vi.stubEnv('AWS_CONFIG_FILE', nowhere);
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
}

afterEach(() => {
  vi.unstubAllEnvs();
});

async function useStore({ store }: ReturnType<typeof openByRole>): Promise<void> {
  await store.put('note', text('by role'), options);
  expect((await buffer(await store.getRange('note'))).toString()).toBe('by role');
}

describe('credentials by role', () => {
  test('come from the instance, by its second metadata service, and are asked for again before they end', async () => {
    let asked = 0;
    const metadata = await serve((request, response) => {
      const { url, method, headers } = request;
      if (
        method === 'PUT' &&
        url === '/latest/api/token' &&
        headers['x-aws-ec2-metadata-token-ttl-seconds']
      ) {
        response.end('metadata-token');
      } else if (headers['x-aws-ec2-metadata-token'] !== 'metadata-token') {
        response.writeHead(401).end();
      } else if (url === '/latest/meta-data/iam/security-credentials/') {
        response.end('gateway-role');
      } else if (url === '/latest/meta-data/iam/security-credentials/gateway-role') {
        asked += 1;
        response.end(JSON.stringify({ Code: 'Success', Type: 'AWS-HMAC', ...awsCredentials('', 60_000) }));
      } else response.writeHead(404).end();
    });
    awsEnvironment({ AWS_EC2_METADATA_SERVICE_ENDPOINT: metadata });
    const opened = openByRole();
    await useStore(opened);
    await useStore(opened);
    // AWS's library renews them beside the requests: perhaps only after the last of these has ended.
    await expect.poll(() => asked).toBeGreaterThan(1);
  });

  test('come from the container (ECS, EKS Pod Identity), and the session token goes with each request', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'heliograph-role-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const tokenFile = join(directory, 'token');
    writeFileSync(tokenFile, 'pod-token');
    const agent = await serve((request, response) => {
      if (request.headers.authorization !== 'pod-token') response.writeHead(403).end();
      else response.end(JSON.stringify(awsCredentials('session-token')));
    });
    awsEnvironment({
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${agent}/v1/credentials`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: tokenFile,
    });
    const { url, tokens } = await anyTokenStore();
    await useStore(openByRole({ HELIOGRAPH_OBJECT_STORE_URL: url }));
    expect([...tokens]).toEqual(['session-token']);
  });

  test('come for a web identity (IRSA), from the token service', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'heliograph-role-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const tokenFile = join(directory, 'token');
    writeFileSync(tokenFile, 'projected-token');
    const asked: URLSearchParams[] = [];
    const tokenService = await serve(async (request, response) => {
      asked.push(new URLSearchParams((await buffer(request)).toString()));
      const { AccessKeyId, SecretAccessKey, Expiration } = awsCredentials('');
      response.setHeader('content-type', 'text/xml').end(
        `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
           <AssumeRoleWithWebIdentityResult><Credentials>
             <AccessKeyId>${AccessKeyId}</AccessKeyId><SecretAccessKey>${SecretAccessKey}</SecretAccessKey>
             <SessionToken>web-token</SessionToken><Expiration>${Expiration}</Expiration>
           </Credentials></AssumeRoleWithWebIdentityResult>
           <ResponseMetadata><RequestId>1</RequestId></ResponseMetadata>
         </AssumeRoleWithWebIdentityResponse>`,
      );
    });
    awsEnvironment({
      AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile,
      AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/gateway',
      AWS_ENDPOINT_URL_STS: tokenService,
    });
    const { url, tokens } = await anyTokenStore();
    await useStore(openByRole({ HELIOGRAPH_OBJECT_STORE_URL: url }));
    expect([...tokens]).toEqual(['web-token']);
    expect(Object.fromEntries(asked[0] ?? [])).toMatchObject({
      Action: 'AssumeRoleWithWebIdentity',
      RoleArn: 'arn:aws:iam::123456789012:role/gateway',
      WebIdentityToken: 'projected-token',
    });
  });

  test('that nobody gives make the store unavailable, and no more', async () => {
    awsEnvironment({ AWS_EC2_METADATA_DISABLED: 'true' });
    await expect(openByRole().store.ensureBucket()).rejects.toThrow(ObjectStoreUnavailable);
  });
});

test('with a prefix every object is below it, and one is found, measured and removed there', async () => {
  const bucket = `prefix-${randomBytes(6).toString('hex')}`;
  const { store } = open({
    HELIOGRAPH_OBJECT_STORE_BUCKET: bucket,
    HELIOGRAPH_OBJECT_STORE_PREFIX: 'gateway/',
  });
  await store.put('a/1', text('x'), options);
  await store.put('a/2', text('yy'), options);
  const { store: whole } = open({ HELIOGRAPH_OBJECT_STORE_BUCKET: bucket });
  expect(await whole.stat('gateway/a/2')).toEqual({ sizeBytes: 2 });
  expect(await store.stat('a/2')).toEqual({ sizeBytes: 2 });
  expect((await buffer(await store.getRange('a/2', { start: 1, end: 1 }))).toString()).toBe('y');
  await store.remove('a/2');
  await expect(whole.stat('gateway/a/2')).rejects.toThrow('no object');
  expect(await whole.stat('gateway/a/1')).toEqual({ sizeBytes: 1 });
});

/** A MinIO that can encrypt. */
async function encryptingMinio() {
  const dataDir = mkdtempSync(join(tmpdir(), 'heliograph-minio-'));
  const { minio: binary } = await ensureBinaries({ env: process.env, log: () => undefined });
  const [port = 0, consolePort = 0] = await findFreePorts(2);
  const log = () => undefined;
  const supervisor = createSupervisor({ log, recordFile: join(dataDir, 'pids.json'), restartDelayMs: 100 });
  onTestFinished(async () => {
    await supervisor.stop();
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 3 });
  });
  const env = { MINIO_KMS_SECRET_KEY: `gateway-key:${randomBytes(32).toString('base64')}` };
  const place = { dataDir, logFile: join(dataDir, 'minio.log'), port, consolePort, env };
  const { accessKey, secretKey } = await startMinio(supervisor, { binary, ...place });
  const admin = new Client({ endPoint: '127.0.0.1', port, useSSL: false, accessKey, secretKey });
  const settings = {
    HELIOGRAPH_OBJECT_STORE_URL: `http://127.0.0.1:${port}`,
    HELIOGRAPH_OBJECT_STORE_ACCESS_KEY: accessKey,
    HELIOGRAPH_OBJECT_STORE_SECRET_KEY: secretKey,
  };
  return { admin, settings };
}

test('server-side encryption is asked for with small objects and with large ones in parts', async () => {
  const { admin, settings } = await encryptingMinio();
  const large = randomBytes(PART_BYTES + 1);
  const kinds: [string, Record<string, string>][] = [
    ['AES256', {}],
    ['aws:kms', { HELIOGRAPH_OBJECT_STORE_KMS_KEY_ID: 'gateway-key' }],
  ];
  for (const [kind, key] of kinds) {
    const { store, bucket } = open({ ...settings, HELIOGRAPH_OBJECT_STORE_ENCRYPTION: kind, ...key });
    await store.put('small', text('secret'), options);
    await store.put('large', [large] as unknown as AsyncIterable<Uint8Array>, options);
    expect(await buffer(await store.getRange('large'))).toEqual(large);
    for (const name of ['small', 'large']) {
      const { metaData } = await admin.statObject(bucket, name);
      expect(metaData['server-side-encryption'] ?? metaData['x-amz-server-side-encryption'], name).toBe(kind);
    }
  }
});
