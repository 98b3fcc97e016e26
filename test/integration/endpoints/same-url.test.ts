import { expect, test } from 'vitest';
import { startAdmin } from '../../support/admin-cli.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { addKey, OTHER_WABA, startTestApi, WABA } from '../api/api-harness.ts';
import { addUser, tenantOf } from '../portal/portal-browser.ts';

const URL = 'https://93.184.215.14/hook';

test('who adds a second endpoint with the same URL is warned, in the API and in the portal', async () => {
  const api = await startTestApi();
  const { authorization } = await addKey(api.database);
  const add = async (url: string) => {
    const request = {
      method: 'POST',
      url: '/api/external/webhook-endpoints',
      headers: { authorization },
    } as const;
    return (await api.app.inject({ ...request, payload: { url } })).json();
  };
  const first = await add(URL);
  expect(first).toMatchObject({ id: expect.any(String), sameUrlEndpointIds: [] });
  expect((await add(`${URL}/other`)).sameUrlEndpointIds).toEqual([]);
  expect((await add(URL)).sameUrlEndpointIds).toEqual([first.id]);
  const tenantId = await tenantOf(api.database, WABA);
  const admin = await addUser(api, { email: 'admin@store.example', role: 'admin', tenantId });
  await admin.get(`/portal/w/${WABA}/endpoints/new`);
  const { body } = await admin.post(`/portal/w/${WABA}/endpoints`, { url: URL });
  expect(body).toContain('have the same URL: events arrive there once for each endpoint');
});

test('who changes an URL to that of another endpoint is warned, in the API and in the portal', async () => {
  const api = await startTestApi();
  const { authorization } = await addKey(api.database);
  const change = async (id: string, payload: object) => {
    const request = {
      method: 'PATCH',
      url: `/api/external/webhook-endpoints/${id}`,
      headers: { authorization },
    } as const;
    return (await api.app.inject({ ...request, payload })).json();
  };
  const first = await addEndpoint(api.database, WABA, URL);
  const { id } = await addEndpoint(api.database, WABA, `${URL}/other`);
  const foreign = await addEndpoint(api.database, OTHER_WABA, URL);
  expect(await change(id, { description: 'second' })).toMatchObject({ id, sameUrlEndpointIds: [] });
  const tenantId = await tenantOf(api.database, WABA);
  const admin = await addUser(api, { email: 'admin@store.example', role: 'admin', tenantId });
  const path = `/portal/w/${WABA}/endpoints/${id}`;
  const notice = `Endpoint ${first.id} has the same URL: events arrive there once for each endpoint`;
  expect((await admin.get(`${path}/edit`)).body).not.toContain(notice);
  const saved = await admin.post(`${path}/edit`, { url: URL, description: 'second' });
  const page = (await admin.get(String(saved.headers.location))).body;
  expect(page).toContain('The settings are saved.');
  expect(page).toContain(notice);
  expect((await change(id, { url: `${URL}/third` })).sameUrlEndpointIds).toEqual([]);
  expect((await admin.get(path)).body).not.toContain(notice);
  const back = await change(id, { url: URL });
  expect(back.sameUrlEndpointIds).toEqual([first.id]);
  expect(back.sameUrlEndpointIds).not.toContain(foreign.id);
});

test('the command warns too', async () => {
  const { admin, json } = await startAdmin();
  const command = ['endpoint', 'add', '--waba', WABA, '--url', URL];
  expect((await admin(command)).stderr).toBe('');
  const note = /^note: Endpoint \d+ has the same URL/;
  expect((await admin(command)).stderr).toMatch(note);
  const { id } = await json('endpoint', 'add', '--waba', WABA, '--url', `${URL}/other`);
  const update = (...options: string[]) => admin(['endpoint', 'update', id, ...options]);
  expect((await update('--url', `${URL}/third`)).stderr).toBe('');
  expect((await update('--url', URL)).stderr).toMatch(/^note: Endpoints \d+, \d+ have the same URL/);
  expect((await update('--timeout-ms', '5000')).stderr).toBe('');
});
