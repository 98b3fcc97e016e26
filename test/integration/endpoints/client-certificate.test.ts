import { createPrivateKey } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { generate } from 'selfsigned';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { setClientCertificate } from '../../../src/features/endpoints/endpoint-certificate.ts';
import { addEndpoint, endpointStatus } from '../../../src/features/endpoints/endpoints.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { makeHttpSender } from '../../../src/platform/sender/http-sender.ts';
import { startAdmin } from '../../support/admin-cli.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { startTestApi, WABA } from '../api/api-harness.ts';
import { externalClient } from '../api/external-client.ts';
import { markupProblems } from '../portal/markup-problems.ts';
import { addUser, tenantOf } from '../portal/portal-browser.ts';
import { attemptAt } from './attempt-at.ts';

const DAY_MS = 86_400_000;
type Pair = { certificate: string; privateKey: string };
let first: Pair;
let second: Pair;

beforeAll(async () => {
  [first, second] = [await issue('heliograph-1'), await issue('heliograph-2')];
});

async function issue(name: string, notAfterDate = new Date(Date.now() + 90 * DAY_MS)): Promise<Pair> {
  const notBeforeDate = new Date(notAfterDate.getTime() - 100 * DAY_MS);
  const made = await generate([{ name: 'commonName', value: name }], {
    keySize: 2048,
    notBeforeDate,
    notAfterDate,
  });
  return { certificate: made.cert, privateKey: made.private };
}

/** A server that serves only clients with one of our certificates, and says which one it saw. */
async function startDemandingServer() {
  const name = 'hooks.example';
  const { private: key, cert } = await generate([{ name: 'commonName', value: name }], {
    keySize: 2048,
    extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: name }] }],
  });
  const trusted = [first.certificate, second.certificate];
  const seen: string[] = [];
  let connections = 0;
  const tls = { key, cert, ca: trusted, requestCert: true, rejectUnauthorized: true };
  const server = createServer(tls, (request, response) => {
    seen.push(String((request.socket as TLSSocket).getPeerCertificate().subject.CN));
    request.resume().on('end', () => response.end('ok'));
  }).on('secureConnection', () => {
    connections += 1;
  });
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return { url: `https://${name}:${port}/hook`, ca: cert, seen, connections: () => connections };
}

/** The certificates of endpoints, and attempts through the sender of the workers. */
async function startSending(ca: string) {
  const { database } = await seededDatabase();
  const rules = { allowHttp: false, guard: makeAddressGuard({ allowCidrs: ['127.0.0.0/8'] }) };
  const resolve = async () => ['127.0.0.1'];
  const sender = makeHttpSender({ ...rules, resolve, ca, connectTimeoutMs: 5_000, totalTimeoutMs: 5_000 });
  onTestFinished(() => sender.close());
  const urlRules = { ...rules, resolve };
  const tools = { database, secretBox: testSecretBox, urlRules, maxTimeoutMs: 15_000, actor: SYSTEM };
  const send = async (id: string) => {
    const result = await attemptAt({ database, sender }, id);
    return typeof result === 'number' ? result : 'error';
  };
  return { database, tools, send };
}

test('a server that asks for a certificate gets that of the endpoint, over connections that no other endpoint uses', async () => {
  const server = await startDemandingServer();
  const { tools, send } = await startSending(server.ca);
  const [own, other] = [
    (await addEndpoint(tools, WABA, { url: server.url })).id,
    (await addEndpoint(tools, WABA, { url: server.url })).id,
  ];
  expect([await send(own), server.seen]).toEqual(['error', []]);
  const view = await setClientCertificate(tools, WABA, own, first);
  expect(view).toMatchObject({
    subject: 'CN=heliograph-1',
    fingerprint: expect.stringMatching(/^([0-9A-F]{2}:){31}/),
  });
  expect([await send(own), await send(own), server.seen]).toEqual([
    200,
    200,
    ['heliograph-1', 'heliograph-1'],
  ]);
  const opened = server.connections();
  expect([await send(other), server.seen.length]).toEqual(['error', 2]);
  await setClientCertificate(tools, WABA, other, second);
  expect([await send(other), await send(own)]).toEqual([200, 200]);
  expect(server.seen.slice(2)).toEqual(['heliograph-2', 'heliograph-1']);
  await setClientCertificate(tools, WABA, own, second);
  expect([await send(own), server.seen.at(-1)]).toEqual([200, 'heliograph-2']);
  await setClientCertificate(tools, WABA, own, null);
  expect([await send(own), await send(other), server.seen.length]).toEqual(['error', 200, 6]);
  expect([opened, (await endpointStatus(tools, WABA, own)).clientCertificate]).toEqual([1, null]);
});

test('what is no usable certificate with its key is refused without saying the key; stored keys are encrypted', async () => {
  const { database, tools } = await startSending('');
  const { id } = await addEndpoint(tools, WABA, { url: 'https://hooks.example/' });
  const expired = await issue('heliograph-1', new Date(Date.now() - DAY_MS));
  const lock = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' } as const;
  const locked = createPrivateKey(first.privateKey).export(lock).toString();
  const wrong: [Pair, string | null][] = [
    [{ ...first, privateKey: second.privateKey }, 'privateKey'],
    [{ ...first, privateKey: 'a secret' }, 'privateKey'],
    [{ ...first, privateKey: locked }, 'privateKey'],
    [{ ...first, certificate: '' }, 'certificate'],
    [{ ...first, certificate: first.certificate.replace('MII', 'AII') }, 'certificate'],
    [{ ...first, certificate: first.certificate.repeat(11) }, 'certificate'],
    [expired, 'certificate'],
    [{ ...first, certificate: 'x'.repeat(40_000) }, null],
  ];
  for (const [pair, param] of wrong) {
    const refused = await setClientCertificate(tools, WABA, id, pair).catch((error) => error);
    expect(refused).toMatchObject({ code: 'invalid_value', param });
    expect(refused.message).not.toMatch(/BEGIN|a secret/);
  }
  expect((await endpointStatus(tools, WABA, id)).clientCertificate).toBeNull();
  await setClientCertificate(tools, WABA, id, {
    ...first,
    certificate: first.certificate + second.certificate,
  });
  await expect(setClientCertificate(tools, '900000000000202', id, null)).rejects.toMatchObject({
    code: 'unknown_endpoint',
  });
  const [row] = await query<Record<string, string>>(database, 'select * from webhook_endpoints');
  const audit = await query(database, 'select action, detail from audit_log order by id desc limit 1');
  expect(row?.client_certificate?.match(/BEGIN/g)).toHaveLength(2);
  expect(row?.client_key_sealed).toMatch(/^v1:/);
  expect(JSON.stringify([row, audit])).not.toContain('PRIVATE KEY');
  expect(audit).toMatchObject([
    { action: 'endpoint.client_certificate_set', detail: { subject: 'CN=heliograph-1' } },
  ]);
});

test('the command line sets, shows and removes it; the key comes from standard input', async () => {
  const { json, admin } = await startAdmin();
  const { id } = await json('endpoint', 'add', '--waba', WABA, '--url', 'https://shop.example/hook');
  const directory = mkdtempSync(join(tmpdir(), 'client-certificate-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'client.pem');
  writeFileSync(path, first.certificate);
  const command = ['endpoint', 'client-certificate', id];
  const set = await admin([...command, '--certificate', path, '--key-stdin', '--json'], first.privateKey);
  expect(JSON.parse(set.stdout)).toMatchObject({ id, clientCertificate: { subject: 'CN=heliograph-1' } });
  const { stdout } = await admin(['endpoint', 'show', id]);
  expect(stdout).toMatch(/^client certificate +CN=heliograph-1$/m);
  expect(stdout).toContain(JSON.parse(set.stdout).clientCertificate.fingerprint);
  expect((await admin([...command, '--certificate', path])).exitCode).not.toBe(0);
  // In a container no file of the operator is at hand.
  const both = [...command, '--certificate', '-', '--key-stdin', '--json'];
  const piped = await admin(both, `${second.privateKey}\n${second.certificate}`);
  expect(JSON.parse(piped.stdout)).toMatchObject({ clientCertificate: { subject: 'CN=heliograph-2' } });
  const keyless = await admin(both, second.certificate);
  expect([keyless.exitCode, keyless.stderr]).toEqual([2, expect.stringContaining('key')]);
  expect(await json(...command, '--remove')).toEqual({ id, clientCertificate: null });
});

test('the portal sets, shows and removes it for those who may change the endpoint; the API shows it', async () => {
  const api = await startTestApi();
  const call = await externalClient(api);
  const tenantId = await tenantOf(api.database, WABA);
  const browser = await addUser(api, { email: 'admin@store.example', role: 'admin', tenantId });
  const created = await call('POST', '/api/external/webhook-endpoints', { url: 'https://93.184.216.34/a' });
  const { id, clientCertificate } = created.json();
  expect(clientCertificate).toBeNull();
  const own = `/portal/w/${WABA}/endpoints/${id}`;
  await browser.get(own);
  const wrong = await browser.post(`${own}/client-certificate`, { ...first, privateKey: second.privateKey });
  expect([wrong.statusCode, await markupProblems(wrong.body)]).toEqual([422, []]);
  expect(wrong.body).not.toContain('BEGIN');
  const soon = await issue('heliograph-3', new Date(Date.now() + 5 * DAY_MS));
  const set = await browser.post(`${own}/client-certificate`, soon);
  expect(set.headers.location).toBe(`${own}/security?done=certificate-set`);
  const page = await browser.get(`${own}/security?done=certificate-set`);
  expect([page.body.includes('CN=heliograph-3'), await markupProblems(page.body)]).toEqual([true, []]);
  expect(page.body).toContain('It expires soon');
  expect(page.body).not.toContain('BEGIN');
  const shown = (await call('GET', `/api/external/webhook-endpoints/${id}`)).json();
  expect(shown.clientCertificate).toEqual({
    subject: 'CN=heliograph-3',
    issuer: 'CN=heliograph-3',
    fingerprint: expect.any(String),
    expiresAt: expect.stringMatching(/T.*Z$/),
  });
  const member = await addUser(api, { email: 'member@store.example', role: 'member', tenantId });
  expect((await member.get(`${own}/security`)).body).not.toContain('name="privateKey"');
  expect((await member.post(`${own}/client-certificate/remove`, {})).statusCode).toBe(403);
  await browser.post(`${own}/client-certificate/remove`, {});
  expect((await endpointStatus({ ...api, secretBox: testSecretBox }, WABA, id)).clientCertificate).toBeNull();
});
