import { expect, onTestFinished, test, vi } from 'vitest';
import { apiKeyHints, newApiKey } from '../../../src/features/keys/api-key.ts';
import { listAudit } from '../../../src/platform/audit/audit.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { testDatabase } from '../../support/test-database.ts';
import { addKey, signed, startTestApi, WABA } from './api-harness.ts';

type Line = { security?: boolean; action?: string; code?: string; address?: string };

/** An API on a database that stays when it is closed, and the `security` lines of its log. */
async function startNoted() {
  const kept = await testDatabase();
  const lines: Line[] = [];
  const info = (about: Line) => void (about.security === true && lines.push(about));
  const logger = Object.assign(Object.create(silentLogger), { info, child: () => logger });
  const api = await startTestApi(async () => ({ limitsDatabase: kept.database, logger }));
  const close = async () => {
    await api.app.close();
    return (await listAudit(kept, {})).map(({ action, target, detail, wabaId, ip, actor }) => ({
      action,
      target,
      wabaId,
      ip,
      actor,
      ...detail,
    }));
  };
  const ask = async (authorization: string, remoteAddress = '192.0.2.7') =>
    (await api.app.inject({ url: '/me', headers: { authorization }, remoteAddress })).statusCode;
  return { api, lines, close, ask };
}

test('refused keys are counted by address and key, and say whose they are where that is known', async () => {
  const { api, lines, close, ask } = await startNoted();
  const unknown = newApiKey();
  const revoked = await addKey(api.database);
  await api.database.raw('update api_keys set revoked_at = now() where id = :id', { id: revoked.id });
  for (let n = 0; n < 5; n += 1) expect(await ask(`Bearer ${unknown}`)).toBe(401);
  for (let n = 0; n < 3; n += 1) expect(await ask(revoked.authorization, '198.51.100.1')).toBe(401);
  expect(await ask('Bearer nonsense', '2001:db8::1')).toBe(401);
  expect(await ask((await addKey(api.database)).authorization)).toBe(200);
  expect(lines).toHaveLength(3);
  expect(JSON.stringify(lines)).not.toContain(unknown);
  const entries = await close();
  const { prefix } = apiKeyHints(unknown);
  const refused = { action: 'api_key.refused', reason: 'invalid_api_key' };
  expect(entries).toEqual([
    {
      ...refused,
      target: 'no key',
      wabaId: null,
      count: 1,
      ip: expect.stringContaining('2001:db8'),
      actor: expect.any(String),
    },
    {
      ...refused,
      target: `API key ${revoked.id} (${apiKeyHints(revoked.key).prefix})`,
      count: 3,
      ip: '198.51.100.1',
      actor: '198.51.100.1',
      wabaId: WABA,
    },
    { ...refused, target: prefix, wabaId: null, count: 5, ip: '192.0.2.7', actor: '192.0.2.7' },
  ]);
});

test('refused signatures and missing rights are counted too; what is right is not', async () => {
  const { api, lines, close, ask } = await startNoted();
  const body = '{"object":"whatsapp_business_account","entry":[]}';
  const post = async (headers: Record<string, string>) =>
    (await api.app.inject({ method: 'POST', url: '/upstream/webhook', headers, payload: body })).statusCode;
  expect(await post(signed(body))).toBe(200);
  for (let n = 0; n < 4; n += 1)
    expect(await post(signed(body, 'another secret'))).toBeGreaterThanOrEqual(400);
  const key = await addKey(api.database);
  await api.database.raw(`update api_keys set scopes = '{send}' where id = :id`, { id: key.id });
  await api.app.inject({ url: '/api/external/conversations', headers: { authorization: key.authorization } });
  expect(await ask(key.authorization)).toBeLessThan(500);
  expect(lines.map(({ code }) => code)).toEqual(['invalid_signature', 'insufficient_scope']);
  const entries = await close();
  expect(
    entries.map(({ action, reason, count, wabaId }: Record<string, unknown>) => [
      action,
      reason,
      count,
      wabaId,
    ]),
  ).toEqual([
    ['api_key.refused', 'insufficient_scope', 1, WABA],
    ['upstream_signature.refused', 'invalid_signature', 4, null],
  ]);
});

test('however many sources there are, entries and lines of a minute are few, and no refusal is uncounted', async () => {
  // The minute does not end while they come.
  vi.useFakeTimers({ toFake: ['setInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const { lines, close, ask } = await startNoted();
  for (let n = 0; n < 1_500; n += 1) {
    await ask(`Bearer ${newApiKey()}`, `10.${n >> 8}.${n & 255}.1`);
  }
  expect(lines.length).toBeLessThanOrEqual(60);
  const entries = await close();
  expect(entries).toHaveLength(21);
  expect(entries.reduce((sum, { count }: Record<string, unknown>) => sum + Number(count), 0)).toBe(1_500);
});
