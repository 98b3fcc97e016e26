import { expect, onTestFinished, test } from 'vitest';
import { startUpstreamServer } from '../../../dev/sandbox/upstream-server.ts';
import { lookAtSignupApp } from '../../../src/ops/health/signup-app.ts';
import { testConfig } from '../api/api-harness.ts';

const APP = '700000000000001';
const SECRET = 'test-app-secret';

/** What the doctor finds with these settings, and an upstream whose app has this secret. */
async function look(settings: Record<string, string>) {
  const upstream = await startUpstreamServer({
    host: '127.0.0.1',
    port: 0,
    appSecret: SECRET,
    verifyToken: 'verify',
    ingressUrl: 'http://127.0.0.1:9',
    accessToken: 'token',
  });
  onTestFinished(() => upstream.close());
  const config = testConfig({ HELIOGRAPH_UPSTREAM_GRAPH_URL: upstream.url, ...settings });
  return await lookAtSignupApp({ config });
}

const signup = {
  HELIOGRAPH_UPSTREAM_APP_ID: APP,
  HELIOGRAPH_UPSTREAM_SIGNUP_CONFIG_ID: '700000000000002',
  HELIOGRAPH_UPSTREAM_APP_SECRETS: `${SECRET},old-secret`,
  HELIOGRAPH_PORTAL_PRODUCT_ORIGINS: 'https://crm.example',
};

test('without an app, links with steps are made, and that is said', async () => {
  expect(await look({})).toEqual([
    { status: 'up', detail: expect.stringContaining('HELIOGRAPH_UPSTREAM_SIGNUP_CONFIG_ID are not set') },
  ]);
});

test('an app that takes the first secret is fine; one that does not, or no origin to lead back to, is named', async () => {
  expect(await look(signup)).toEqual([{ status: 'up', detail: `the app ${APP} takes its secret` }]);
  const wrong = await look({ ...signup, HELIOGRAPH_UPSTREAM_APP_SECRETS: `old-secret,${SECRET}` });
  expect(wrong).toEqual([
    {
      status: 'down',
      detail: `the first of HELIOGRAPH_UPSTREAM_APP_SECRETS is not the secret of the app ${APP}`,
      todo: expect.stringContaining('HELIOGRAPH_UPSTREAM_APP_ID'),
    },
  ]);
  const nowhere = await look({ ...signup, HELIOGRAPH_PORTAL_PRODUCT_ORIGINS: '' });
  expect(nowhere).toEqual([
    expect.objectContaining({ status: 'degraded', todo: expect.stringContaining('PRODUCT_ORIGINS') }),
  ]);
});

test('half of the settings, or a secret of some WABAs only, ends the start with the name of each', () => {
  const problemOf = (settings: Record<string, string>) => {
    try {
      testConfig(settings);
      return null;
    } catch (error) {
      return String(error);
    }
  };
  const { HELIOGRAPH_UPSTREAM_SIGNUP_CONFIG_ID: _, ...half } = signup;
  expect(problemOf(half)).toMatch(/APP_ID and HELIOGRAPH_UPSTREAM_SIGNUP_CONFIG_ID must be set together/);
  expect(problemOf({ ...signup, HELIOGRAPH_UPSTREAM_APP_ID: 'app' })).toMatch(
    /APP_ID must be an id of digits/,
  );
  const bound = problemOf({ ...signup, HELIOGRAPH_UPSTREAM_APP_SECRETS: `${SECRET}@900` });
  expect(bound).toMatch(/the first of HELIOGRAPH_UPSTREAM_APP_SECRETS must be its secret/);
  expect(problemOf(signup)).toBeNull();
});
