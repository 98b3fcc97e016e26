import { expect, test } from 'vitest';
import { takeIn } from '../../../support/take-in.ts';
import { fixtureBodyTo } from '../../../support/upstream-fixtures.ts';
import { add, admin, api, endpointsPath, office, useEndpointBrowser } from './endpoint-browser.ts';

useEndpointBrowser();

test('a filter is set in the form, tried on recent events without being saved, and wrong ones are explained', async () => {
  const { id } = await add({ filter: '$.message.type equals "text"\nnot $.message.context exists' });
  await takeIn(api.database, fixtureBodyTo(office, 'in_text'), fixtureBodyTo(office, 'in_location_named'));
  const page = await admin.get(`${endpointsPath}/${id}/settings`);
  expect(page.body).toContain('$.message.type equals &quot;text&quot; and not $.message.context exists');
  const tried = await admin.get(`${endpointsPath}/${id}/filter`);
  expect(tried.body).toContain('1 of 2 events are taken');
  const other = await admin.post(`${endpointsPath}/${id}/filter`, {
    filter: '$.message.type in ["location", "text"]',
  });
  expect(other.body).toContain('2 of 2 events are taken');
  const wrong = await admin.post(`${endpointsPath}/${id}/filter`, { filter: '$.message.type like "t"' });
  expect([wrong.statusCode, wrong.body.includes('has no operator')]).toEqual([422, true]);
  expect((await admin.get(`${endpointsPath}/${id}/settings`)).body).toContain('not $.message.context exists');
  const refused = await admin.post(`${endpointsPath}/${id}/edit`, {
    url: 'https://receiver.example/hook',
    filter: '$.message.type equals text',
  });
  expect([refused.statusCode, refused.body.includes('double quotes')]).toEqual([422, true]);
  const cleared = await admin.post(`${endpointsPath}/${id}/edit`, {
    url: 'https://receiver.example/hook',
    filter: '',
  });
  expect(cleared.statusCode).toBe(303);
  expect((await admin.get(`${endpointsPath}/${id}/settings`)).body).toContain('every event');
});
