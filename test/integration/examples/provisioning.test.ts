import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Page } from 'playwright-core';
import { expect, onTestFinished, test } from 'vitest';
import { APP } from '../../../dev/sandbox/graph/app-subscriptions.ts';
import { startUpstreamServer } from '../../../dev/sandbox/upstream-server.ts';
import { makeProduct } from '../../../examples/product/server.ts';
import { connected, connectLink } from '../../../examples/provisioning/connect-number.ts';
import {
  type Customer,
  type Event,
  follow,
  type Known,
  note,
  platformApi,
  replaceKey,
  suspend,
} from '../../../examples/provisioning/provision.ts';
import { query, queryValue } from '../../../src/platform/postgres/sql.ts';
import { freePort } from '../../acceptance/support/free-ports.ts';
import { startApiProcess } from '../../support/application-process.ts';
import { launchChrome } from '../../support/browser.ts';
import { testSettings } from '../../support/test-settings.ts';
import { eventually, startReceiver } from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';
import { apiOfFile } from '../api/api-harness.ts';
import { addPlatformKey } from '../api/provisioning/platform-client.ts';
import { dialogIn, passDialog } from '../setup/setup-world.ts';

const api = apiOfFile();

const customersOf = (product: string, wabas: string): readonly Customer[] =>
  Array.from({ length: 200 }, (_, n) => ({
    id: `${product}-${n}`,
    name: `Customer ${n}`,
    wabaId: `${wabas}${String(n).padStart(5, '0')}`,
  }));

/** What the tables have of the customers. */
async function stored(product: string): Promise<Map<string, Known>> {
  const rows = await query<{
    id: string;
    isSuspended: boolean;
    wabas: string[];
    keyIds: string[];
    numbers: string[];
  }>(
    api.database,
    `select t.external_id as id, t.suspended_at is not null as "isSuspended",
            array(select waba_id from wabas w where w.tenant_id = t.id) as wabas,
            array(select k.id::text from api_keys k join wabas w using (waba_id)
                   where w.tenant_id = t.id and k.revoked_at is null) as "keyIds",
            array(select phone_number_id from setup_links l where l.tenant_id = t.id and state = 'done') as numbers
       from tenants t where starts_with(t.external_id, :product)`,
    { product },
  );
  return new Map(
    rows.map(({ id, isSuspended, wabas, keyIds, numbers }) => [
      id,
      {
        state: isSuspended ? 'suspended' : 'active',
        wabas: new Set(wabas),
        keyIds: new Set(keyIds),
        numbers: new Set(numbers),
      },
    ]),
  );
}

const ENCRYPTION_KEYS = `k1:${Buffer.alloc(32, 1).toString('base64')}`;

/** A program of the product that goes through all customers, and prints each key that it was given. */
const PROGRAM = `
  const { bringAllIn, platformApi } = await import(process.env.EXAMPLE);
  const ask = platformApi(process.env.URL, process.env.PLATFORM_KEY);
  const keep = async ({ id }, apiKey) => console.log(id + ' ' + apiKey);
  await bringAllIn(ask, JSON.parse(process.env.CUSTOMERS), keep);
`;

/** The customer at Meta, and in the product. */
async function startOutside() {
  const [port, own] = [await freePort(), await freePort()];
  const [url, origin] = [`http://127.0.0.1:${port}`, `http://localhost:${own}`];
  const sandbox = await startUpstreamServer({
    host: '127.0.0.1',
    port: 0,
    appSecret: 'test-app-secret',
    verifyToken: 'test-verify-token',
    ingressUrl: url,
    now: () => Date.now(),
  });
  onTestFinished(() => sandbox.close());
  const settings = testSettings(api.databaseUrl, {
    HELIOGRAPH_PUBLIC_URL: url,
    HELIOGRAPH_UPSTREAM_GRAPH_URL: sandbox.url,
    HELIOGRAPH_UPSTREAM_APP_ID: APP.id,
    HELIOGRAPH_UPSTREAM_SIGNUP_CONFIG_ID: '990000000000001',
    HELIOGRAPH_PORTAL_PRODUCT_ORIGINS: origin,
    HELIOGRAPH_ENCRYPTION_KEYS: ENCRYPTION_KEYS,
    HELIOGRAPH_WEBHOOK_TIMEOUT_MS: '1000',
    // What a key may ask in ten seconds has tests of its own.
    HELIOGRAPH_RATE_LIMIT_WRITES_PER_SECOND: '0',
  });
  const registrations = async (phoneNumberId: string | null) => {
    const answer = await fetch(`${sandbox.url}/sandbox/requests`);
    const { data } = (await answer.json()) as { data: { path: string }[] };
    return data.filter(({ path }) => path.endsWith(`/${phoneNumberId}/register`)).length;
  };
  const returns = { successUrl: `${origin}/connected`, failureUrl: `${origin}/not-connected` };
  return { settings, url, origin, own, returns, registrations };
}

/** A browser that begins with a link, and then goes through Meta's dialog and comes back. */
async function beginsWith(linkUrl: string, gateway: string) {
  const begun = await fetch(linkUrl, { method: 'POST', headers: { origin: 'null' } });
  const dialog = dialogIn(await begun.text());
  const cookie = begun.headers.get('set-cookie')?.split(';')[0] ?? '';
  return async () => {
    const back = await passDialog(dialog, 'finish');
    const answer = await fetch(`${gateway}${back}`, { redirect: 'manual', headers: { cookie } });
    expect(answer.status).toBe(303);
  };
}

/** The page of the product with the portal in a frame, also when the API was killed between two clicks. */
async function opensFrame(page: Page, origin: string, killed: () => Promise<void>): Promise<void> {
  await page.goto(`${origin}/webhooks`);
  const frame = page.frameLocator('iframe');
  await frame.getByRole('heading', { name: 'Webhook Settings' }).waitFor();
  await killed();
  await frame.getByRole('link', { name: 'Add endpoint' }).first().click();
  await frame.getByRole('button', { name: 'Add' }).waitFor();
}

/** The example as a reader starts it; `said` waits for what it prints. */
function startExample(env: Record<string, string>) {
  const path = new URL('../../../examples/provisioning/whole-product.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [path], {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  for (const output of [child.stdout, child.stderr])
    output.on('data', (chunk) => {
      printed += String(chunk);
    });
  onTestFinished(() => void child.kill('SIGKILL'));
  const said = async (what: RegExp): Promise<string> => {
    await eventually(String(what), () => {
      if (child.exitCode !== null) throw new Error(printed);
      return what.test(printed);
    });
    return what.exec(printed)?.[1] ?? '';
  };
  return { child, said };
}

test('the script of a whole product brings in 200 customers twice side by side, and goes on where it was killed: nothing twice, and the feed gives the state', async () => {
  const { settings, url, origin } = await startOutside();
  const { platformKey } = await addPlatformKey(api.database);
  const server = await startApiProcess(settings, new URL(url).port);
  const worker = startWorkerProcess(settings);
  onTestFinished(async () => void (await Promise.all([server.kill(), worker.kill()])));
  const ask = platformApi(url, platformKey);
  const env = { HELIOGRAPH_URL: url, HELIOGRAPH_PLATFORM_KEY: platformKey, PRODUCT_ORIGIN: origin };
  const first = startExample(env);
  await eventually('some are there', async () => (await stored('shop-')).size > 20);
  first.child.kill('SIGKILL');
  const { said } = startExample(env);
  const linkUrl = await said(/as the customer: (\S+)/);
  await (await beginsWith(linkUrl, url))();
  await said(/The link is (done): \d+/);
  expect(await said(/The feed says of (\d+) tenants what the API lists/)).toBe('200');

  const state = await stored('shop-');
  expect(state.size).toBe(200);
  for (const [id, { wabas, numbers }] of state) {
    const isLinked = id === 'shop-0';
    expect([id, wabas.size, numbers.size]).toEqual([id, isLinked ? 2 : 1, isLinked ? 1 : 0]);
  }
  const suspended = [...state].flatMap(([id, one]) => (one.state === 'suspended' ? [id] : []));
  expect(suspended.sort()).toEqual(['shop-198', 'shop-199']);
  const known = new Map<string, Known>();
  await follow(ask, known, null);
  expect(known).toEqual(state);
  const chrome = await launchChrome();
  onTestFinished(() => chrome.close());
  await opensFrame(await chrome.newPage(), origin, async () => {});
});

test('the same steps while API, workers and programs are killed, a number is connected by link and the portal opened in a frame: nothing twice, nothing lost, and feed and hook give the state', async () => {
  const customers = customersOf('store', '9700000000');
  const { settings, url, origin, own, returns, registrations } = await startOutside();
  const { platformKey } = await addPlatformKey(api.database);
  const { port } = new URL(url);
  let server = await startApiProcess(settings, port);
  let worker = startWorkerProcess(settings);
  onTestFinished(async () => void (await Promise.all([server.kill(), worker.kill()])));
  const [linked] = customers as [Customer, ...Customer[]];
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const ask = platformApi(url, platformKey);
  await ask('PUT', '/operations-hooks/store', { url: `${receiver.url}/hook` });
  const known = new Map<string, Known>();
  let cursor: string | null = null;
  const printed: string[] = [];
  const startProgram = async () => {
    const { platformKey: ownKey } = await addPlatformKey(api.database);
    const example = new URL('../../../examples/provisioning/provision.ts', import.meta.url).href;
    const env = { EXAMPLE: example, URL: url, PLATFORM_KEY: ownKey, CUSTOMERS: JSON.stringify(customers) };
    const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM], {
      env: { PATH: process.env.PATH ?? '', ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child.stdout.on('data', (chunk) => printed.push(String(chunk)));
    onTestFinished(() => void child.kill('SIGKILL'));
    return { child, ended: once(child, 'exit') as Promise<[number | null, string | null]> };
  };
  const tenants = async () =>
    Number(
      await queryValue(api.database, `select count(*) from tenants where starts_with(external_id, 'store')`),
    );
  let programs = [await startProgram(), await startProgram()];
  const link = async () => await connectLink(ask, linked, { visit: 'visit-42', ...returns });
  let comeBack: (() => Promise<void>) | null = null;
  for (const most of [30, 90, 150]) {
    await eventually(`${most} tenants`, async () => (await tenants()) >= most);
    const { url: linkUrl } = await link();
    comeBack ??= await beginsWith(linkUrl, url);
    const [dying, other] = programs;
    dying?.child.kill('SIGKILL');
    await Promise.all([server.kill(), worker.kill(), dying?.ended]);
    server = await startApiProcess(settings, port);
    worker = startWorkerProcess(settings);
    if (most === 30) await comeBack();
    // As a program that is started again: it has nothing but its list.
    programs = [...(other ? [other] : []), await startProgram()];
    cursor = await follow(ask, known, cursor);
  }
  for (const { ended } of programs) expect(await ended).toEqual([0, null]);

  const { id: linkId } = await link();
  const done = await connected(ask, linked, linkId, 200);
  expect(done).toMatchObject({ state: 'done', failure: null });
  expect(await registrations(done.phoneNumberId)).toBe(1);
  const user = { externalId: 'u_17', email: 'asha@store.example', name: 'Asha' };
  // The customer has two by now: one that the program made, and one of the link.
  const signedIn = () => ({ tenant: linked.id, user, wabaIds: [linked.wabaId] });
  const product = makeProduct({ gateway: url, platformKey, origin, signedIn }).listen(own, '127.0.0.1');
  const chrome = await launchChrome();
  onTestFinished(async () => {
    await chrome.close();
    product.close();
  });
  await opensFrame(await chrome.newPage(), origin, async () => {
    await server.kill();
    server = await startApiProcess(settings, port);
  });

  const keys = printed
    .join('')
    .trim()
    .split('\n')
    .map((line) => line.split(' '));
  const ids = keys.map(([id]) => id);
  expect(new Set(ids).size).toBe(ids.length);
  // The key was in an answer that did not come: it is replaced.
  const lost = customers.filter(({ id }) => !ids.includes(id));
  for (const customer of [...lost, ...customers.slice(0, 20)]) await replaceKey(ask, customer);
  for (const customer of customers.slice(-2)) await suspend(ask, customer, 'The invoice is due.');

  const state = await stored('store');
  expect(state.size).toBe(customers.length);
  for (const [id, { wabas }] of state) expect([id, wabas.size]).toEqual([id, id === linked.id ? 2 : 1]);
  expect([...(state.get(linked.id)?.numbers ?? [])]).toEqual([done.phoneNumberId]);
  const links = `/tenants/${linked.id}/setup-links`;
  expect((await ask<{ data: object[] }>('GET', links)).data).toHaveLength(1);
  await follow(ask, known, cursor);
  expect(ofStore(known)).toEqual(state);
  await eventually('the hook has all', () => ofStore(fromHook(receiver.received)), { is: state });
});

/** Without the tenants of another test. */
const ofStore = (known: Map<string, Known>) => new Map([...known].filter(([id]) => id.startsWith('store')));

/** What a program knows that keeps the last sequence of each tenant, and ignores what came before. */
function fromHook(received: readonly { body: string }[]): Map<string, Known> {
  const known = new Map<string, Known>();
  const last = new Map<string, number>();
  for (const { body } of received) {
    const event = JSON.parse(body) as Event;
    const id = event.tenant?.externalId ?? '';
    if (event.sequence <= (last.get(id) ?? 0)) continue;
    last.set(id, event.sequence);
    note(known, event);
  }
  return known;
}
