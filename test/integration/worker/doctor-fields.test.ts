import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { startUpstreamServer } from '../../../dev/sandbox/upstream-server.ts';
import { ACCESS_TOKEN } from '../../../src/features/accounts/access-tokens.ts';
import { lookAtFields } from '../../../src/ops/health/app-fields.ts';
import { execute } from '../../../src/platform/postgres/sql.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { testConfig, WABA } from '../api/api-harness.ts';

const APP = '700000000000001';
const SECRET = 'test-app-secret';

/** An installation with one WABA whose token upstream takes, and upstream. */
async function world({ token = 'token' as string | null, secrets = `old-secret,${SECRET}` } = {}) {
  const upstream = await startUpstreamServer({
    host: '127.0.0.1',
    port: 0,
    appSecret: SECRET,
    verifyToken: 'verify',
    ingressUrl: 'http://127.0.0.1:9',
    accessToken: 'token',
  });
  onTestFinished(() => upstream.close());
  const { database } = await seededDatabase();
  const sealed = token === null ? null : testSecretBox.seal(token, ACCESS_TOKEN.place(WABA));
  await execute(database, 'update wabas set access_token_sealed = :sealed where waba_id = :WABA', {
    sealed,
    WABA,
  });
  const config = testConfig({
    HELIOGRAPH_UPSTREAM_GRAPH_URL: upstream.url,
    HELIOGRAPH_UPSTREAM_APP_SECRETS: secrets,
  });
  const change = async (method: string, query: string) => {
    const answer = await fetch(`${upstream.url}/v26.0/${APP}/subscriptions${query}`, {
      method,
      headers: { authorization: `Bearer ${APP}|${SECRET}` },
    });
    expect(answer.status).toBe(200);
  };
  return {
    database,
    look: () => lookAtFields({ database, secretBox: testSecretBox, config }),
    drop: (fields: string) => change('DELETE', `?object=whatsapp_business_account&fields=${fields}`),
    dropAll: () => change('DELETE', '?object=whatsapp_business_account'),
  };
}

let one: Awaited<ReturnType<typeof world>>;

beforeEach(async () => {
  one = await world();
});

test('an app that subscribes to what is needed is fine, whatever else it leaves out', async () => {
  await one.drop('calls,history,security');
  expect(await one.look()).toEqual([
    { status: 'up', detail: 'the apps of 1 WABAs subscribe to the fields that are needed' },
  ]);
});

test('what is missing is named, with what happens without it and where to add it', async () => {
  await one.drop('standby,messaging_handovers,user_preferences');
  expect(await one.look()).toEqual([
    {
      status: 'degraded',
      detail: `the app Heliograph sandbox (${APP}) does not subscribe to user_preferences: it is not noticed who wants no marketing messages`,
      todo: expect.stringContaining('Webhook fields'),
    },
    {
      status: 'degraded',
      detail: `the app Heliograph sandbox (${APP}) does not subscribe to standby, messaging_handovers: it is not noticed when another responder shares a number`,
      todo: expect.stringContaining('Webhook fields'),
    },
  ]);
  await one.drop('messages');
  expect((await one.look())[0]).toMatchObject({
    status: 'down',
    detail: expect.stringContaining('messages'),
  });
  await one.dropAll();
  expect(await one.look()).toEqual([
    expect.objectContaining({ status: 'down', detail: expect.stringContaining('no active webhook') }),
  ]);
});

test.each([
  ['another app', 'a-secret-of-another-app'],
  ['other WABAs only', `${SECRET}@900000000000202`],
])('a secret of %s is said, and no field is guessed', async (_whose, secrets) => {
  const { look } = await world({ secrets });
  expect(await look()).toEqual([
    {
      status: 'degraded',
      detail: `WABA ${WABA} has subscribed Heliograph sandbox, and no app secret of the settings is of such an app`,
      todo: expect.stringContaining('HELIOGRAPH_UPSTREAM_APP_SECRETS'),
    },
  ]);
});

test('without a token that upstream takes, the check of tokens says what to do', async () => {
  for (const token of [null, 'wrong']) {
    const { look } = await world({ token });
    expect(await look()).toEqual([
      expect.objectContaining({ status: 'degraded', todo: 'see the check "upstream" first' }),
    ]);
  }
  await execute(one.database, 'update wabas set removed_at = now()', {});
  expect(await one.look()).toEqual([{ status: 'up', detail: 'there is no WABA yet' }]);
});
