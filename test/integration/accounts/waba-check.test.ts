import { describe, expect, onTestFinished, test } from 'vitest';
import { startAdmin, WABA } from '../../support/admin-cli.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { addKey, OTHER_WABA, startTestApi } from '../api/api-harness.ts';
import { startUpstream } from '../api/api-upstream.ts';

const IDS = ['token', 'subscription', 'numbers', 'following', 'activity', 'items', 'endpoints'];

type Check = { id: string; question: string; status: string; detail: string; todo?: string };

const statusesOf = (checks: readonly Check[]) =>
  Object.fromEntries(checks.map(({ id, status }) => [id, status]));

describe('the check of a WABA', () => {
  test('over REST: a key reads that of its own WABA, and what to do where something is not up', async () => {
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    const api = await startTestApi(upstream.overrides);
    const check = async (wabaId: string) => {
      const { authorization } = await addKey(api.database, wabaId);
      const response = await api.app.inject({ url: '/api/external/waba-check', headers: { authorization } });
      expect(response.statusCode).toBe(200);
      return JSON.parse(response.body) as { wabaId: string; checks: Check[] };
    };
    const before = await check(WABA);
    expect(before.wabaId).toBe(WABA);
    expect(before.checks.map(({ id }) => id)).toEqual(IDS);
    expect(statusesOf(before.checks)).toMatchObject({
      token: 'down',
      endpoints: 'down',
      activity: 'unknown',
    });
    for (const { id, status, todo } of before.checks) {
      if (status === 'up') expect(todo, id).toBeUndefined();
      if (status === 'down') expect(todo, id).toEqual(expect.any(String));
    }

    await upstream.addTokens(api.database);
    await addEndpoint(api.database, WABA, 'https://up.example/hook');
    expect(statusesOf((await check(WABA)).checks)).toMatchObject({ token: 'up', endpoints: 'up' });
    const other = await check(OTHER_WABA);
    expect([other.wabaId, statusesOf(other.checks).endpoints]).toEqual([OTHER_WABA, 'down']);
  });

  test('over the command line, which finds no WABA that does not exist', async () => {
    const { json, admin } = await startAdmin();
    const { wabaId, checks } = await json('waba', 'check', WABA);
    expect([wabaId, (checks as Check[]).map(({ id }) => id)]).toEqual([WABA, IDS]);
    const shown = await admin(['waba', 'check', WABA]);
    expect(shown.stdout).toMatch(
      /^down +Does upstream accept the access token\? +There is no readable token\.\n +→ Create a system user token/m,
    );
    expect(await admin(['waba', 'check', '123456789012345'])).toMatchObject({ exitCode: 1, stdout: '' });
  });
});
