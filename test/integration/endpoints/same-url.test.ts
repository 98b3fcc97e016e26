import { expect, test } from 'vitest';
import { startAdmin } from '../../support/admin-cli.ts';
import { addKey, startTestApi, WABA } from '../api/api-harness.ts';
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

test('the command warns too', async () => {
  const { admin } = await startAdmin();
  const command = ['endpoint', 'add', '--waba', WABA, '--url', URL];
  expect((await admin(command)).stderr).toBe('');
  expect((await admin(command)).stderr).toMatch(/^note: Endpoint \d+ has the same URL/);
});
