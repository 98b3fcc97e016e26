import { expect, onTestFinished, test } from 'vitest';
import { rotateSigningKey } from '../../../src/features/endpoints/endpoint-secrets.ts';
import { addEndpoint, endpointStatus, updateEndpoint } from '../../../src/features/endpoints/endpoints.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import { makeHttpSender } from '../../../src/platform/sender/http-sender.ts';
import { startAdmin } from '../../support/admin-cli.ts';
import { verifiesWebhook } from '../../support/ed25519-reference.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { startReceiver } from '../../support/webhook-receiver.ts';
import { startTestApi, WABA } from '../api/api-harness.ts';
import { externalClient } from '../api/external-client.ts';
import { markupProblems } from '../portal/markup-problems.ts';
import { addUser, tenantOf } from '../portal/portal-browser.ts';
import { attemptAt } from './attempt-at.ts';

const BODY = '{"eventType":"test","data":{"text":"grüße 👋"}}';
const RULES = { allowHttp: true, guard: makeAddressGuard({ allowCidrs: ['127.0.0.0/8'] }) };

/** An endpoint with a server behind it, and a way to send to it as attempts do. */
async function startSending(options: { asymmetricSignature?: string } = {}) {
  const { database } = await seededDatabase();
  const receiver = await startReceiver();
  const sender = makeHttpSender({ ...RULES, connectTimeoutMs: 5_000, totalTimeoutMs: 5_000 });
  onTestFinished(async () => {
    await sender.close();
    await receiver.close();
  });
  const urlRules = { ...RULES, resolve: async () => ['127.0.0.1'] };
  const tools = { database, secretBox: testSecretBox, urlRules, maxTimeoutMs: 15_000, actor: SYSTEM };
  const { id } = await addEndpoint(tools, WABA, { url: receiver.url, ...options });
  const send = async () => {
    await attemptAt({ database, sender }, id, BODY);
    const { headers, body } = receiver.received.at(-1) ?? fail();
    const list = String(headers['webhook-signature']);
    const timestamp = String(headers['webhook-timestamp']);
    return { id: String(headers['webhook-id']), timestamp, list, body, headers };
  };
  const publicKeys = async () => (await endpointStatus(tools, WABA, id)).publicKeys ?? [];
  return { database, tools, id, send, publicKeys };
}

test('off by default: the headers are as they were, and there is no key', async () => {
  const { send, publicKeys } = await startSending();
  const { list, headers } = await send();
  expect(list).toMatch(/^v1,\S+$/);
  expect(headers['x-service-signature']).toBe(list);
  expect(await publicKeys()).toEqual([]);
});

test('what arrives verifies with the public key, by another implementation; switched off, the key is kept', async () => {
  const { tools, id, send, publicKeys } = await startSending();
  await updateEndpoint(tools, WABA, id, { asymmetricSignature: 'ed25519' });
  const [key] = await publicKeys();
  expect(key).toEqual({ publicKey: expect.stringMatching(/^whpk_/), expiresAt: null });
  const webhook = await send();
  expect(webhook.list).toMatch(/^v1,\S+ v1a,\S+$/);
  expect(webhook.headers['x-service-signature']).toBe(webhook.list);
  expect(verifiesWebhook(key?.publicKey ?? '', webhook)).toBe(true);
  expect(verifiesWebhook(key?.publicKey ?? '', { ...webhook, body: `${webhook.body} ` })).toBe(false);
  await updateEndpoint(tools, WABA, id, { asymmetricSignature: null });
  expect((await send()).list).not.toContain('v1a');
  expect(await publicKeys()).toEqual([]);
  await updateEndpoint(tools, WABA, id, { asymmetricSignature: 'ed25519' });
  expect(await publicKeys()).toEqual([key]);
});

test('a rotation signs with both keys for the overlap, and with the new one alone after it', async () => {
  const { database, tools, id, send, publicKeys } = await startSending({ asymmetricSignature: 'ed25519' });
  const [first] = await publicKeys();
  const rotated = await rotateSigningKey(tools, WABA, id, { overlapHours: 1 });
  const keys = await publicKeys();
  expect(keys).toEqual([
    { publicKey: rotated.publicKey, expiresAt: null },
    { publicKey: first?.publicKey, expiresAt: rotated.previousKeyExpiresAt },
  ]);
  const both = await send();
  for (const { publicKey } of keys) expect(verifiesWebhook(publicKey, both)).toBe(true);
  await database.raw(`update webhook_endpoints set previous_signing_key_expires_at = now() - interval '1 s'`);
  const after = await send();
  expect([first?.publicKey ?? '', rotated.publicKey].map((key) => verifiesWebhook(key, after))).toEqual([
    false,
    true,
  ]);
  expect(await publicKeys()).toHaveLength(1);
  const last = await rotateSigningKey(tools, WABA, id, { overlapHours: 0 });
  expect(await publicKeys()).toEqual([{ publicKey: last.publicKey, expiresAt: null }]);
});

test('the API shows public keys, rotates them, and never a private one', async () => {
  const api = await startTestApi();
  const call = await externalClient(api);
  const endpoints = '/api/external/webhook-endpoints';
  const plain = (await call('POST', endpoints, { url: 'https://93.184.216.34/a' })).json();
  expect(plain).toMatchObject({ asymmetricSignature: 'none', publicKeys: [] });
  const refused = await call('POST', `${endpoints}/${plain.id}/rotate-signing-key`, {});
  expect([refused.statusCode, refused.json().error.code]).toEqual([409, 'no_signing_key']);
  const created = await call('POST', endpoints, {
    url: 'https://93.184.216.34/b',
    asymmetricSignature: 'ed25519',
  });
  const { id, publicKeys } = created.json();
  expect(publicKeys).toEqual([{ publicKey: expect.stringMatching(/^whpk_/), expiresAt: null }]);
  const rotated = await call('POST', `${endpoints}/${id}/rotate-signing-key`, { overlapHours: 2 });
  const shown = await call('GET', `${endpoints}/${id}`);
  expect(shown.json().publicKeys).toEqual([
    { publicKey: rotated.json().publicKey, expiresAt: null },
    { publicKey: publicKeys[0].publicKey, expiresAt: rotated.json().previousKeyExpiresAt },
  ]);
  for (const payload of [{ overlapHours: 169 }, { overlapHours: -1 }, { secret: 'x' }]) {
    const wrong = await call('POST', `${endpoints}/${id}/rotate-signing-key`, payload);
    expect([wrong.statusCode, wrong.json().error.code]).toEqual([400, 'invalid_parameter']);
  }
  const missing = await call('POST', `${endpoints}/999/rotate-signing-key`, {});
  expect([missing.statusCode, missing.json().error.code]).toEqual([404, 'not_found']);
  const { rows } = await api.database.raw('select detail::text as detail from audit_log');
  for (const text of [created.body, rotated.body, shown.body, JSON.stringify(rows)]) {
    expect(text).not.toContain('whsk_');
  }
});

test('the command line shows the keys and rotates them', async () => {
  const { json, admin } = await startAdmin();
  const add = ['endpoint', 'add', '--waba', WABA, '--url', 'https://shop.example/hook'];
  const { id, publicKeys } = await json(...add, '--asymmetric-signature', 'ed25519');
  const rotated = await json('endpoint', 'rotate-signing-key', id, '--overlap-hours', '3');
  const { stdout } = await admin(['endpoint', 'show', id]);
  expect(stdout).toMatch(new RegExp(`^public key +${escaped(rotated.publicKey)}$`, 'm'));
  expect(stdout).toContain(`${publicKeys[0].publicKey}, signs too until ${rotated.previousKeyExpiresAt}`);
});

test('the portal shows the public key and rotates it', async () => {
  const api = await startTestApi();
  const tenantId = await tenantOf(api.database, WABA);
  const browser = await addUser(api, { email: 'admin@store.example', role: 'admin', tenantId });
  const path = `/portal/w/${WABA}/endpoints`;
  await browser.get(`${path}/new`);
  const made = await browser.post(path, {
    url: 'https://receiver.example/hook',
    asymmetricSignature: 'ed25519',
  });
  expect(made.body).toContain('with the public key');
  const own = `${path}/${/endpoints\/(\d+)"/.exec(made.body)?.[1]}`;
  const keysOn = (text: string) => [...new Set(text.match(/whpk_[A-Za-z0-9+/]{43}=/g))];
  const page = await browser.get(`${own}/security`);
  expect([keysOn(page.body).length, await markupProblems(page.body)]).toEqual([1, []]);
  const rotated = await browser.post(`${own}/rotate-signing-key`, { keyOverlapHours: '24' });
  expect(rotated.headers.location).toBe(`${own}/security?done=key-rotated`);
  const after = await browser.get(`${own}/security?done=key-rotated`);
  expect([keysOn(after.body).length, await markupProblems(after.body)]).toEqual([2, []]);
  expect(keysOn(after.body)[1]).toBe(keysOn(page.body)[0]);
  expect((await browser.post(`${own}/rotate-signing-key`, { keyOverlapHours: '9999' })).statusCode).toBe(422);
});

function escaped(text: string): string {
  return text.replaceAll(/[+/]/g, '\\$&');
}

function fail(): never {
  throw new Error('nothing was received');
}
