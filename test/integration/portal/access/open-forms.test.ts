import { expect, test } from 'vitest';
import { apiOfFile } from '../../api/api-harness.ts';
import { newOffice, openBrowser, PASSWORD } from '../portal-browser.ts';

const api = apiOfFile();
const SIGN_IN = '/portal/sign-in';

test('a form of strangers has up to 8 KiB, one of users up to 64 KiB and 200 fields', async () => {
  const stranger = openBrowser(api.app);
  await stranger.get(SIGN_IN);
  const rest = `_csrf=${stranger.token()}&email=a@b.example&password=`;
  const sent = (length: number) => stranger.post(SIGN_IN, rest.padEnd(length, 'x'));
  expect((await sent(8_192)).statusCode).not.toBe(413);
  expect((await sent(8_193)).statusCode).toBe(413);
  const { admin } = await newOffice(api);
  await admin.get('/portal/account');
  const fields = (count: number) => `_csrf=${admin.token()}${'&a=1'.repeat(count - 1)}`;
  expect((await admin.post('/portal/sign-out', fields(201))).statusCode).toBe(413);
  expect((await admin.post('/portal/sign-out', `a=${'x'.repeat(65_535)}`)).statusCode).toBe(413);
  expect((await admin.post('/portal/sign-out', fields(200))).statusCode).not.toBe(413);
});

test('after many forms that cannot be used, those of the address are refused unread, but of known browsers', async () => {
  const office = await newOffice(api);
  const address = '10.99.0.1';
  const known = openBrowser(api.app, address);
  await known.get(SIGN_IN);
  const credentials = { email: office.adminEmail, password: PASSWORD };
  expect((await known.post(SIGN_IN, credentials)).statusCode).toBe(303);
  await known.get('/portal/account');
  await known.post('/portal/sign-out');
  const stranger = openBrowser(api.app, address);
  const statuses: number[] = [];
  for (let count = 0; count < 40; count += 1) statuses.push((await stranger.post(SIGN_IN, 'a&a')).statusCode);
  expect(statuses).toEqual([...Array(31).fill(403), ...Array(9).fill(429)]);
  await stranger.get(SIGN_IN);
  expect((await stranger.post(SIGN_IN, credentials)).statusCode).toBe(429);
  await known.get(SIGN_IN);
  expect((await known.post(SIGN_IN, credentials)).statusCode).toBe(303);
  const elsewhere = openBrowser(api.app);
  await elsewhere.get(SIGN_IN);
  expect((await elsewhere.post(SIGN_IN, credentials)).statusCode).toBe(303);
});

test('a form whose bytes are no UTF-8 is refused, and one that is UTF-8 is read', async () => {
  const stranger = openBrowser(api.app);
  await stranger.get(SIGN_IN);
  const statusOf = async (email: string) =>
    (await stranger.post(SIGN_IN, `_csrf=${stranger.token()}&email=${email}&password=x`)).statusCode;
  for (const email of ['caf%e9@b.example', '%C3', '%ED%A0%80']) expect(await statusOf(email)).toBe(400);
  const wrong = await statusOf('a@b.example');
  for (const email of ['caf%C3%A9@b.example', 'é@b.example', '100%@b.example', '%zz'])
    expect([email, await statusOf(email)]).toEqual([email, wrong]);
});
