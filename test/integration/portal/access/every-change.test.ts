import { beforeAll, expect, test } from 'vitest';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { apiOfFile, WABA } from '../../api/api-harness.ts';
import { filledIn, pageRoutes, pathOf } from '../page-routes.ts';
import { addUser, type PortalBrowser, tenantOf } from '../portal-browser.ts';

/** Changes that a session may make whose last proof is old. Each of them has its reason in its `config`. */
const WITHOUT_PROOF = [
  'POST /portal/account/sessions/:id/end',
  'POST /portal/account/sessions/end-others',
  'POST /portal/alerts/read',
  'POST /portal/operator/deliveries/search',
  'POST /portal/operator/users/:id/sessions/:session/end',
  'POST /portal/operator/users/:id/sessions/end',
  'POST /portal/sign-in/code',
  'POST /portal/sign-out',
  'POST /portal/tenant',
  'POST /portal/w/:wabaId/broadcasts/:id/cancel',
  'POST /portal/w/:wabaId/broadcasts/:id/pause',
  'POST /portal/w/:wabaId/broadcasts/:id/recipients',
  'POST /portal/w/:wabaId/broadcasts/new/template',
  'POST /portal/w/:wabaId/conversations/search',
  'POST /portal/w/:wabaId/deliveries/search',
  'POST /portal/w/:wabaId/endpoints/:id/filter',
  'POST /portal/w/:wabaId/endpoints/:id/test',
  'POST /portal/w/:wabaId/replays/:id/cancel',
  'POST /portal/w/:wabaId/replays/:id/pause',
  'POST /portal/w/:wabaId/replays/:id/resume',
  'POST /portal/w/:wabaId/replays/new',
  'POST /portal/w/:wabaId/users/:id/sessions/:session/end',
  'POST /portal/w/:wabaId/users/:id/sessions/end',
];
/** The form asks for the password itself, so only users with a second factor are asked for a code. */
const ASKS_FOR_CODE = ['POST /portal/account/password'];
const CHANGING = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);
const KEYED = /^\/(api\/(external|platform)|graph)(\/|$)/;
const SIGNED = '/upstream/webhook';
/** The link, or the cookie of the one browser that began with it; neither opens anything else. */
const OF_A_LINK = /^\/setup\/(open\/:token$|links\/:id\/)/;

const api = apiOfFile();
const browsers = new Map<string, PortalBrowser>();

beforeAll(async () => {
  const tenantId = await tenantOf(api.database, WABA);
  const given = [
    { email: 'admin@store.example', role: 'admin', tenantId },
    { email: 'op@host.example', role: 'operator', tenantId: null },
  ];
  for (const user of given) {
    const browser = await addUser(api, user);
    await browser.get('/portal/account');
    browsers.set(user.role, browser);
  }
  await execute(api.database, `update user_sessions set proven_at = now() - interval '11 minutes'`, {});
});

const changes = () =>
  pageRoutes(api.routes).filter(({ method, access }) => CHANGING.has(method) && access !== 'open');
const isAsked = ({ statusCode, body }: { statusCode: number; body: string }) =>
  statusCode === 403 && body.includes('Confirm that it is you');

test('every change of the portal asks who it is when the last proof is old, but for those with a reason', async () => {
  const unasked: string[] = [];
  for (const route of changes()) {
    if (WITHOUT_PROOF.includes(route.name)) continue;
    const browser = browsers.get(route.access === 'operator' ? 'operator' : 'admin');
    const answer = await browser?.post(pathOf(route, { wabaId: WABA, id: '1' }), filledIn(route));
    if (answer === undefined || !isAsked(answer)) unasked.push(route.name);
  }
  expect(unasked).toEqual(ASKS_FOR_CODE);
  expect(changes().length).toBeGreaterThan(60);
});

test('a change without a proof is one of these, and says why', () => {
  const exempt = api.routes.flatMap(({ method, url, config }) => {
    const proof = config?.freshProof;
    return typeof proof === 'object' && CHANGING.has(String(method))
      ? [{ name: `${method} ${url}`, reason: proof.without }]
      : [];
  });
  expect(exempt.map(({ name }) => name).toSorted()).toEqual(WITHOUT_PROOF);
  for (const { reason } of exempt) expect(reason).toMatch(/\w+ \w+/);
});

test('a change outside of the portal has an API key, a signature or a set-up link, never a session', () => {
  const others = api.routes.filter(
    ({ method, url }) => [method].flat().some((one) => CHANGING.has(one)) && !/^\/portal(\/|$)/.test(url),
  );
  const isProved = (url: string) => KEYED.test(url) || url === SIGNED || OF_A_LINK.test(url);
  const open = others.map(({ url }) => url).filter((url) => !isProved(url));
  expect(open).toEqual([]);
  expect(others.length).toBeGreaterThan(15);
});

test('the form of new WABAs replaces no access token without a proof', async () => {
  const tokens = () => query(api.database, 'select waba_id, access_token_sealed from wabas order by 1');
  const before = await tokens();
  const tenantId = await tenantOf(api.database, WABA);
  const given = { wabaId: WABA, accessToken: 'EAAother' };
  const answer = await browsers.get('operator')?.post(`/portal/operator/tenants/${tenantId}/wabas`, given);
  expect(answer?.statusCode).toBe(403);
  expect(await tokens()).toEqual(before);
});
