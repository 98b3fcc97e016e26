import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { SET_PIN } from '../../../dev/sandbox/signup-register.ts';
import { PATIENCE_MS } from '../../support/patience.ts';
import { startWorkerProcess, type WorkerProcess } from '../../support/worker-process.ts';
import { customerOf, goThrough, PRODUCT, type SetupWorld, startSetupWorld } from './setup-world.ts';

/** A customer connects a number: pages, workflow and worker process together, with the sandbox as upstream. */

const PATIENCE = { timeout: PATIENCE_MS, interval: 200 };

let world: SetupWorld;
let worker: WorkerProcess;
let close: () => Promise<void> = async () => {};

beforeAll(async () => {
  world = await startSetupWorld({}, (closeWorld) => {
    close = closeWorld;
  });
  worker = startWorkerProcess(world.settings);
  await worker.ready();
});
beforeEach(async () => await world.clearFaults());
afterAll(async () => {
  await worker.stop();
  await close();
});

/** Waits for a state of a link, and shows what it was instead. */
async function becomes(link: Awaited<ReturnType<SetupWorld['link']>>, state: object) {
  let last: Record<string, unknown> = {};
  await vi.waitFor(async () => {
    last = await link.now();
    expect(last).toMatchObject(state);
  }, PATIENCE);
  return last;
}

const BEARER = { headers: { authorization: 'Bearer x' } };

async function appsOf(wabaId: unknown): Promise<object[]> {
  const answer = await fetch(`${world.sandboxUrl}/v26.0/${wabaId}/subscribed_apps`, BEARER);
  return ((await answer.json()) as { data: object[] }).data;
}

const registersOf = async (id: unknown) =>
  (await world.asked()).filter((line) => line.includes(`/${id}/register`)).map((line) => line.slice(-3));

test('a number is connected: subscribed, registered once with a PIN, checked, and the browser is led back', async () => {
  const link = await world.link({ state: 'u_17' });
  const browser = customerOf(world);
  const { next } = await goThrough(browser, link.path, 'finish');
  const { wabaId, phoneNumberId } = await becomes(link, { state: 'done' });
  const page = await browser.get(next);
  expect(page.body).toContain('Your number is connected');
  const [, address = ''] = /^8; url=(.*)$/.exec(String(page.headers.refresh)) ?? [];
  expect(address.startsWith(`${PRODUCT}/connected?`)).toBe(true);
  expect(Object.fromEntries(new URL(address).searchParams)).toEqual({
    setupLink: link.id,
    status: 'done',
    wabaId,
    phoneNumberId,
    state: 'u_17',
  });
  const apps = await appsOf(wabaId);
  expect(apps).toMatchObject([{ override_callback_uri: `${world.origin}/upstream/webhook` }]);
  expect(await registersOf(phoneNumberId)).toEqual(['200']);
  const { body: tenant } = await world.ask('GET', `/tenants/${link.tenant}`);
  expect(tenant.wabas.map((waba: { wabaId: string }) => waba.wabaId)).toEqual([wabaId]);
});

test('a number with a PIN is registered with the customer’s PIN, after a wrong one', async () => {
  const link = await world.link();
  const browser = customerOf(world);
  const { next } = await goThrough(browser, link.path, 'pin_set');
  await becomes(link, { state: 'failed', failure: { code: 'pin_required' } });
  expect((await browser.get(next)).body).toContain('3 tries are left.');
  const malformed = await browser.post(`${next}/pin`, { pin: '12' });
  expect([malformed.statusCode, malformed.body.includes('pin-problem')]).toEqual([422, true]);
  expect((await browser.post(`${next}/pin`, { pin: '000000' })).statusCode).toBe(303);
  await becomes(link, { state: 'failed', failure: { code: 'pin_required' } });
  expect((await browser.get(next)).body).toContain('2 tries are left.');
  expect((await browser.post(`${next}/pin`, { pin: SET_PIN })).statusCode).toBe(303);
  await becomes(link, { state: 'done' });
});

test('of two WABAs the customer chooses one, and no other id is taken', async () => {
  const link = await world.link();
  const browser = customerOf(world);
  const { next } = await goThrough(browser, link.path, 'two_wabas');
  await vi.waitFor(
    async () => expect((await browser.get(next)).body).toContain('Which account is it?'),
    PATIENCE,
  );
  const options = [...(await browser.get(next)).body.matchAll(/name="id" value="(\d+)"/g)].map(
    ([, id]) => id ?? '',
  );
  expect(options).toHaveLength(2);
  const foreign = await browser.post(`${next}/choice`, { id: '900000000000101' });
  expect([foreign.statusCode, (await link.now()).wabaId]).toEqual([422, null]);
  expect((await browser.post(`${next}/choice`, { id: options[1] ?? '' })).statusCode).toBe(303);
  await becomes(link, { state: 'done', wabaId: options[1] });
});

test('the WABA of another tenant is taken away from nobody', async () => {
  const first = await world.link();
  await goThrough(customerOf(world), first.path, 'finish');
  const { wabaId } = await becomes(first, { state: 'done' });
  const second = await world.link();
  const browser = customerOf(world);
  const { next } = await goThrough(browser, second.path, 'finish', String(wabaId));
  await becomes(second, { state: 'failed', failure: { code: 'waba_taken' } });
  expect((await browser.get(next)).body).toContain('<code>waba_taken</code>');
  expect((await world.ask('GET', `/tenants/${second.tenant}`)).body.wabas).toEqual([]);
});

test.each([
  ['no_permission', 'permission_missing'],
  ['no_waba', 'no_waba'],
  ['only_waba', 'no_number'],
] as const)('after %s the link says %s', async (outcome, code) => {
  const link = await world.link();
  const browser = customerOf(world);
  const { next } = await goThrough(browser, link.path, outcome);
  await becomes(link, { state: 'failed', failure: { code, retryable: true } });
  expect((await browser.get(next)).body).toMatch(/<button class="primary">(Start again at Meta|Try again)/);
});

test('a number that stays in the app is not registered, and one in review is connected with a note', async () => {
  const inApp = await world.link({ connections: ['coexistence'] });
  await goThrough(customerOf(world), inApp.path, 'coexistence');
  const { phoneNumberId } = await becomes(inApp, { state: 'done' });
  expect(await registersOf(phoneNumberId)).toEqual([]);
  const synced = (await world.asked()).filter((line) => line.includes(`${phoneNumberId}/smb_app_data`));
  expect(synced.map((line) => line.slice(-3))).toEqual(['200', '200']);
  const inReview = await world.link();
  const browser = customerOf(world);
  const { next } = await goThrough(browser, inReview.path, 'in_review');
  await becomes(inReview, { state: 'done' });
  expect((await browser.get(next)).body).toContain('reviews the display name');
});

test.each(['token_debug', 'waba_subscription', 'phone_numbers', 'registration'] as const)(
  'when the call of %s fails once, the number is connected all the same',
  async (match) => {
    const link = await world.link();
    await world.addFault({ match, kind: 'status', status: 503, times: 1 });
    await goThrough(customerOf(world), link.path, 'finish');
    await becomes(link, { state: 'done' });
    expect(await world.hits(match)).toBe(1);
  },
);

test('too many registrations are told with the time, and no button is there before', async () => {
  const link = await world.link();
  await world.addFault({ match: 'registration', kind: 'status', status: 400, code: 133_016, times: 1 });
  const browser = customerOf(world);
  const { next } = await goThrough(browser, link.path, 'finish');
  await becomes(link, { state: 'failed', failure: { code: 'registration_rate_limited' } });
  const page = await browser.get(next);
  expect([page.body.includes('Try again after'), page.body.includes('<form')]).toEqual([true, false]);
});

test('without an app the page has the steps, each with what was found, and buttons for what upstream has calls for', async () => {
  const earlier = await world.link();
  const refused = { match: 'registration', kind: 'status', status: 400, code: 133_006, times: 1 } as const;
  await world.addFault(refused);
  await goThrough(customerOf(world), earlier.path, 'finish');
  const { wabaId, phoneNumberId } = await becomes(earlier, { state: 'failed' });
  await world.ask('DELETE', `/tenants/${earlier.tenant}/wabas/${wabaId}`, { confirm: wabaId });
  await fetch(`${world.sandboxUrl}/v26.0/${wabaId}/subscribed_apps`, { method: 'DELETE', ...BEARER });
  const link = await world.link({ mode: 'steps' });
  const browser = customerOf(world);
  await browser.post(link.path);
  const path = `/setup/links/${link.id}`;
  await world.addFault(refused);
  await browser.post(`${path}/token`, { wabaId: String(wabaId), accessToken: 'EAA-pasted' });
  await becomes(link, { state: 'failed', failure: { code: 'registration_refused' } });
  const failed = await browser.get(path);
  expect(failed.body.match(/: done/g)).toHaveLength(3);
  const forms = [...failed.body.matchAll(/name="from" value="(\w+)"/g)].map(([, from]) => from);
  expect(forms).toEqual(['register']);
  expect((await browser.post(`${path}/retry`, { from: 'register' })).statusCode).toBe(303);
  await becomes(link, { state: 'done', wabaId });
  expect((await browser.get(path)).body.match(/: done/g)).toHaveLength(4);
  expect(await registersOf(phoneNumberId)).toEqual(['400', '400', '200']);
});
