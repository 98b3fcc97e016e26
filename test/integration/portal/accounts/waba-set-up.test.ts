import { expect, onTestFinished, test, vi } from 'vitest';
import { launchChrome } from '../../../support/browser.ts';
import { addEndpoint } from '../../../support/test-accounts.ts';
import {
  addConversation,
  NUMBER,
  PUBLIC_URL,
  SECOND_NUMBER,
  startTestApi,
  WABA,
} from '../../api/api-harness.ts';
import { startRecordingUpstream } from '../../api/graph/recording-upstream.ts';
import { listen, problemsInAllLooks, signedInWindow } from '../chrome.ts';
import { addUser } from '../portal-browser.ts';

const OPERATOR = 'op@host.example';
const PAGE = `/portal/operator/wabas/${WABA}/set-up`;
const NUMBERS = [NUMBER, SECOND_NUMBER].map((id) => ({
  id,
  display_phone_number: id,
  verified_name: 'Store',
}));

/** Upstream that knows one good token, and sends webhooks of the WABA to `callbackUrl` if one is set. */
async function startUpstream() {
  const upstream = await startRecordingUpstream();
  const state: { callbackUrl: string | null } = { callbackUrl: null };
  upstream.reply(({ url, authorization }) => {
    if (authorization !== 'Bearer EAAgood')
      return { status: 401, json: { error: { code: 190, message: 'Invalid OAuth access token' } } };
    if (url.includes('/phone_numbers')) return { json: { data: NUMBERS } };
    const { callbackUrl } = state;
    const app = {
      whatsapp_business_api_data: { id: '1', name: 'Heliograph' },
      override_callback_uri: callbackUrl,
    };
    return { json: { data: callbackUrl === null ? [] : [app] } };
  });
  return { ...upstream, state };
}

/** The service at its public address, which no test can reach. */
function publicAddress() {
  const state: { status: number | null } = { status: null };
  const fetched = vi.spyOn(globalThis, 'fetch').mockImplementation(async (url) => {
    if (String(url) !== `${PUBLIC_URL}/readyz` || state.status === null) throw new Error('no way');
    return new Response(null, { status: state.status });
  });
  onTestFinished(() => fetched.mockRestore());
  return state;
}

test('the guided set-up checks each of its six steps, says which is next, and is done when a message arrived', async () => {
  const upstream = await startUpstream();
  const address = publicAddress();
  const api = await startTestApi(upstream.overrides);
  const operator = await addUser(api, { email: OPERATOR, role: 'operator', tenantId: null });
  const progress = async () => {
    const { body } = await operator.get(PAGE);
    const [, done] = /(\d of 6) steps are done/.exec(body) ?? [];
    const [, next] = / Next: (.*?)\./.exec(body) ?? [];
    return [done, next];
  };
  const saveToken = async (accessToken: string) => {
    await operator.get(PAGE);
    return await operator.post(`/portal/operator/wabas/${WABA}/access-token`, {
      accessToken,
      from: 'set-up',
    });
  };
  expect(await progress()).toEqual(['0 of 6', 'the service has a public address']);
  address.status = 503;
  expect((await operator.get(PAGE)).body).toContain('/readyz returns 503.');
  address.status = 200;
  expect(await progress()).toEqual(['1 of 6', 'upstream accepts the access token']);

  const refused = await saveToken('EAAwrong');
  expect([refused.statusCode, refused.body.includes('1 of 6 steps')]).toEqual([422, true]);
  expect(refused.body).toMatch(/id="accessToken-problem">Upstream refuses/);
  expect((await saveToken('EAAgood')).headers.location).toBe(`${PAGE}?done=saved`);
  expect(await progress()).toEqual(['3 of 6', 'the app is subscribed to the WABA']);

  upstream.state.callbackUrl = 'https://elsewhere.example/hook';
  expect((await operator.get(PAGE)).body).toContain('sent to https://elsewhere.example/hook');
  upstream.state.callbackUrl = `${PUBLIC_URL}/upstream/webhook`;
  expect(await progress()).toEqual(['4 of 6', 'the tenant has an endpoint']);

  const chrome = await launchChrome();
  onTestFinished(() => chrome.close());
  const origin = await listen(api.app);
  const page = await (await signedInWindow(chrome, origin, OPERATOR)).newPage();
  await page.goto(`${origin}${PAGE}`);
  expect(await problemsInAllLooks(page, 'waba-set-up')).toEqual([]);

  const recheck = page.locator('#endpoint').getByRole('link', { name: 'Check again' });
  for (const _ of ['once', 'twice']) {
    await recheck.click();
    await page.waitForLoadState();
  }
  await addEndpoint(api.database, WABA, 'https://shop.example/hook');
  await recheck.click();
  await page.getByText('5 of 6 steps are done. Next: a first message arrives.').waitFor();
  await addConversation(api.database);
  await page.getByRole('link', { name: 'Check all again' }).click();
  await page.getByText('6 of 6 steps are done. Webhooks arrive and are delivered.').waitFor();
});
