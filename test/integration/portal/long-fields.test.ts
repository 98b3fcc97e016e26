import { beforeEach, expect, test } from 'vitest';
import { cpuMsOf, LONG_TEXTS } from '../../support/long-texts.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { apiOfFile } from '../api/api-harness.ts';
import { filledIn, type PageRoute, pageRoutes, pathOf } from './page-routes.ts';
import { newOffice, newUser, openBrowser, type PortalBrowser } from './portal-browser.ts';

/** By the square of its length a text would take several seconds. */
const MAX_CPU_MS = 1_000;

/** What fits into the address of a request. */
const URL_TEXTS = LONG_TEXTS.filter((_, index) => index % 4 === 0).map((text) => `${text.slice(0, 5_000)}!`);

/** Pages read these without declaring them. */
const UNDECLARED = ['cursor', 'page', 'endpointId', 'conversationId', 'attempt', 'done'];

const api = apiOfFile();
let admin: PortalBrowser;
let operator: PortalBrowser;
let params: Record<string, string>;

beforeEach(async () => {
  const { wabaId, admin: owner } = await newOffice(api);
  const { id } = await addEndpoint(api.database, wabaId, 'https://receiver.example/a');
  params = { wabaId, id };
  admin = owner;
  operator = (await newUser(api, null)).browser;
  await admin.get('/portal/account');
  await operator.get('/portal/account');
});

/** Whoever may use it: forms for everybody come from somebody new each time. */
async function browserFor({ access }: PageRoute): Promise<PortalBrowser> {
  if (access !== 'open') return access === 'operator' ? operator : admin;
  const stranger = openBrowser(api.app);
  await stranger.get('/portal/sign-in');
  return stranger;
}

type Tried = { name: string; field: string; text: string; status: number; cpuMs: number };

async function tried(
  { name }: PageRoute,
  field: string,
  text: string,
  send: () => Promise<{ statusCode: number }>,
): Promise<Tried> {
  let status = 0;
  const cpuMs = await cpuMsOf(async () => {
    status = (await send()).statusCode;
  });
  return { name, field, text: text.slice(0, 8), status, cpuMs };
}

function expectFine(all: readonly Tried[]): void {
  // Whoever is refused before the form is read has shown nothing.
  const unread = ({ status }: Tried) => status >= 500 || status === 413 || status === 403;
  expect(all.filter((one) => unread(one) || one.cpuMs > MAX_CPU_MS)).toEqual([]);
}

/** As much of a text as a form has room for. */
function upTo(text: string, bytes: number): string {
  const encoded = new URLSearchParams({ text }).toString();
  return text.slice(0, Math.floor((bytes * text.length) / encoded.length));
}

test('every field of every form takes as much as the form may have, without an error of ours and without much time', async () => {
  const forms = pageRoutes(api.routes).filter(({ method }) => method === 'POST');
  const all: Tried[] = [];
  for (const form of forms) {
    const fields = filledIn(form);
    for (const text of LONG_TEXTS) {
      for (const field of Object.keys(fields)) {
        const browser = await browserFor(form);
        const path = pathOf(form, params);
        const value = upTo(text, form.access === 'open' ? 6_000 : 60_000);
        all.push(await tried(form, field, text, () => browser.post(path, { ...fields, [field]: value })));
      }
    }
  }
  expectFine(all);
  // Both are still signed in, and most was wrong for what it says.
  for (const browser of [admin, operator])
    expect((await browser.get('/portal/account')).statusCode).toBe(200);
  expect(forms.length).toBeGreaterThan(40);
  expect(all.filter(({ status }) => status === 400 || status === 422).length).toBeGreaterThan(1_000);
}, 480_000);

test('every parameter of every page takes as much as fits into an address', async () => {
  const pages = pageRoutes(api.routes).filter(({ method }) => method === 'GET');
  const all: Tried[] = [];
  for (const page of pages) {
    const browser = await browserFor(page);
    const declared = page.parameters.length > 0 ? page.parameters : UNDECLARED;
    for (const text of URL_TEXTS) {
      for (const name of declared) {
        const query = new URLSearchParams({ [name]: text });
        all.push(await tried(page, name, text, () => browser.get(`${pathOf(page, params)}?${query}`)));
      }
      const isNamed = /:(?!wabaId)\w+/.test(page.url);
      const path = pathOf(page, { ...params, ...everyParam(page, text) });
      if (isNamed) all.push(await tried(page, 'path', text, () => browser.get(path)));
    }
  }
  expectFine(all);
  expect(pages.length).toBeGreaterThan(40);
}, 480_000);

function everyParam({ url }: PageRoute, text: string): Record<string, string> {
  const names = [...url.matchAll(/:(\w+)/g)].map(([, name = '']) => name).filter((name) => name !== 'wabaId');
  return Object.fromEntries(names.map((name) => [name, text]));
}
