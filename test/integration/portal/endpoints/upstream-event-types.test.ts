import { expect, test } from 'vitest';
import { add, admin, endpointsPath, office, stored, useEndpointBrowser } from './endpoint-browser.ts';

useEndpointBrowser();

test('the form of an endpoint offers known fields, and keeps those that it has no name for', async () => {
  const { id } = await add({ eventTypes: 'upstream.some_future_field' });
  expect((await stored(id)).event_types).toEqual(['upstream.some_future_field']);
  const form = (await admin.get(`${endpointsPath}/${id}/edit`)).body;
  expect(form).toMatch(/value="upstream\.some_future_field" checked/);
  expect(form).toMatch(/<details open>.{0,200}other fields of the upstream platform/s);
  expect(form).toMatch(/value="upstream\.\*" >/);
  expect(form).toMatch(/value="upstream\.account_update" >/);
  expect((await admin.get(`${endpointsPath}/new`)).body).not.toContain('<details open>');
});

test('the catalogue describes known fields with an example, and no others', async () => {
  const base = `${office.path}/event-types`;
  expect((await admin.get(base)).body).toContain(`href="${base}/upstream.account_update"`);
  const page = await admin.get(`${base}/upstream.account_update`);
  expect([page.statusCode, page.body]).toEqual([200, expect.stringContaining('ACCOUNT_VIOLATION')]);
  expect((await admin.get(`${base}/upstream.some_future_field`)).statusCode).toBe(404);
});
