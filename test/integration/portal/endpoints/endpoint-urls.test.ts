import { expect, test } from 'vitest';
import {
  actions,
  add,
  admin,
  api,
  endpointsPath,
  office,
  stored,
  useEndpointBrowser,
} from './endpoint-browser.ts';

useEndpointBrowser();

test('the address is checked as saving does, without saving and without telling where a name leads', async () => {
  const check = async (url: string) =>
    (await admin.get(`${endpointsPath}/check-url?${new URLSearchParams({ url })}`)).body;
  expect(await check('https://[::1]/')).toContain('not sent to');
  expect(await check('https://8.8.8.8/hook')).toContain('can be used');
  expect(await check('https://8.8.8.8:443/a')).toContain('<code>https://8.8.8.8/a</code>');
  expect(await check('"><script>alert(1)</script>')).not.toContain('<script>');
});

test('who asks for a name hears the same of one that leads inside and of one that does not exist', async () => {
  await api.database.raw(
    `update wabas set webhook_deny = '{127.0.0.0/8,"::1/128"}' where waba_id = '${office.wabaId}'`,
  );
  const check = (host: string) => admin.get(`${endpointsPath}/check-url?url=https://${host}/hook`);
  const inside = await check('localhost');
  expect(inside.body).toContain('not sent to');
  expect((await check('no-such-name.invalid')).body).toBe(inside.body);
  for (let asked = 2; asked < 30; asked += 1) expect((await check('localhost')).statusCode).toBe(200);
  const refused = await check('localhost');
  expect([refused.statusCode, Number(refused.headers['retry-after']) > 0]).toEqual([429, true]);
  const saved = await admin.post(endpointsPath, { url: 'https://localhost/hook', check: '1' });
  expect(saved.statusCode).toBe(429);
  const created = await admin.post(endpointsPath, { url: 'https://localhost/hook' });
  expect([created.statusCode, Number(created.headers['retry-after']) > 0]).toEqual([429, true]);
  expect((await check('8.8.8.8')).statusCode).toBe(200);
});

test('the operations URL is set with a secret shown once, refused where it is an endpoint, and removed', async () => {
  await add();
  const alerts = `${endpointsPath}/alerts`;
  await admin.get(alerts);
  const refused = await admin.post(alerts, { url: 'https://receiver.example/hook' });
  expect([refused.statusCode, refused.body.includes('has this URL')]).toEqual([422, true]);
  const saved = await admin.post(alerts, { url: 'https://ops.example/alerts' });
  expect([saved.statusCode, /whsec_[A-Za-z0-9+/]{20}/.test(saved.body)]).toEqual([200, true]);
  const page = await admin.get(alerts);
  expect(page.body).toContain('value="https://ops.example/alerts"');
  expect(page.body).not.toMatch(/whsec_[A-Za-z0-9+/]{20}/);
  expect((await admin.post(`${alerts}/rotate-secret`)).body).toMatch(/whsec_[A-Za-z0-9+/]{20}/);
  expect((await admin.post(`${alerts}/remove`)).statusCode).toBe(303);
  expect(await actions()).toEqual([
    'endpoint.created',
    'operations_url.set',
    'operations_url.secret_rotated',
    'operations_url.removed',
  ]);
});

test('a URL of another server takes no header along: the form says so before, the page after', async () => {
  const { id } = await add({ newHeaders: 'Authorization: Bearer s3cret' });
  expect((await admin.get(`${endpointsPath}/${id}/edit`)).body).toContain(
    'they are removed unless you enter them again',
  );
  const saved = await admin.post(`${endpointsPath}/${id}/edit`, { url: 'https://other.example/hook' });
  expect(saved.headers.location).toBe(`${endpointsPath}/${id}?done=moved-without-headers`);
  const page = await admin.get(`${endpointsPath}/${id}?done=moved-without-headers`);
  expect(page.body).toContain('so your custom headers were removed');
  expect(page.body).toMatch(/<a href="[^"]*\/endpoints\/\d+\/security#secret">rotate it<\/a>/);
  expect(await stored(id)).toMatchObject({ url: 'https://other.example/hook', custom_headers_sealed: null });

  const alerts = `${endpointsPath}/alerts`;
  await admin.get(alerts);
  await admin.post(alerts, { url: 'https://ops.example/alerts' });
  await admin.get(alerts);
  const moved = await admin.post(alerts, { url: 'https://ops2.example/alerts' });
  expect(moved.headers.location).toBe(`${alerts}?done=moved`);
  const { rows } = await api.database.raw('select detail from audit_log order by id desc limit 1');
  expect(rows[0].detail).toEqual({ host: 'ops2.example', previousHost: 'ops.example' });
});
