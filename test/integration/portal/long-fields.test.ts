import { expect, test } from 'vitest';
import { addEndpoint } from '../../support/test-accounts.ts';
import { startTestApi, WABA } from '../api/api-harness.ts';
import { filledIn, pageRoutes, pathOf } from './page-routes.ts';
import { addUser, tenantOf } from './portal-browser.ts';

const LENGTH = 100_000;

/** By the square of its length a text would take several seconds. */
const MAX_CPU_MS = 1_000;

/** What an expression that begins again at each character is slow with. */
const LONG_TEXTS = [' ', 'a.', '0'].map((pump) => `a${pump.repeat(LENGTH / pump.length)}!`);

/** Forms that end the session which sends them, or remove what later forms are about. */
const LEAVING = /\/(sign-out|password|end|end-others|delete)$/;

test('every field of every form takes 100,000 characters, without an error of ours and without much time', async () => {
  const api = await startTestApi();
  const tenantId = await tenantOf(api.database, WABA);
  const { id } = await addEndpoint(api.database, WABA, 'https://receiver.example/a');
  const admin = await addUser(api, { email: 'admin@store.example', role: 'admin', tenantId });
  const operator = await addUser(api, { email: 'op@host.example', role: 'operator', tenantId: null });
  await admin.get('/portal/account');
  await operator.get('/portal/account');
  const forms = pageRoutes(api.routes).filter(({ method, url }) => method === 'POST' && !LEAVING.test(url));
  const failed: unknown[] = [];
  const statuses = new Map<number, number>();
  for (const form of forms) {
    const path = pathOf(form, { wabaId: WABA, id });
    const browser = form.access === 'operator' ? operator : admin;
    const fields = filledIn(form);
    for (const [index, text] of LONG_TEXTS.entries()) {
      for (const field of Object.keys(fields)) {
        const before = process.cpuUsage();
        const { statusCode } = await browser.post(path, { ...fields, [field]: text });
        const { user, system } = process.cpuUsage(before);
        const cpuMs = (user + system) / 1_000;
        statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1);
        if (statusCode >= 500 || cpuMs > MAX_CPU_MS)
          failed.push([form.name, field, index, statusCode, cpuMs]);
      }
    }
  }
  expect(failed).toEqual([]);
  // The forms were read: both are still signed in, and most was wrong for what it says.
  for (const browser of [admin, operator])
    expect((await browser.get('/portal/account')).statusCode).toBe(200);
  expect(forms.length).toBeGreaterThan(40);
  expect((statuses.get(400) ?? 0) + (statuses.get(422) ?? 0)).toBeGreaterThan(300);
}, 240_000);
