import { beforeEach, describe, expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { apiOfFile, PUBLIC_URL } from '../../api/api-harness.ts';
import {
  newOffice,
  newUser,
  type Office,
  openBrowser,
  PASSWORD,
  type PortalBrowser,
} from '../portal-browser.ts';

const api = apiOfFile();
let email: string;
let browser: PortalBrowser;
/** A form with an effect that can be counted. */
let form: string;
let office: Office;

beforeEach(async () => {
  office = await newOffice(api);
  ({ admin: browser, adminEmail: email } = office);
  form = `${office.path}/users/invite`;
});

/** Each to another address, because an address gets few links a day. */
let invited = 0;
const invite = () => {
  invited += 1;
  return { email: `new${invited}@store.example`, role: 'member' };
};
const invitations = () =>
  query(api.database, 'select 1 from invitations where tenant_id = :tenantId and accepted_at is null', {
    tenantId: office.tenantId,
  });

const FOREIGN: [string, Record<string, string>, Record<string, string | undefined>][] = [
  ['no token', { _csrf: '' }, {}],
  ['a wrong token', { _csrf: 'a'.repeat(43) }, {}],
  ['a foreign origin', {}, { origin: 'https://evil.example' }],
  ['a foreign origin of a similar name', {}, { origin: `${PUBLIC_URL}.evil.example` }],
  ['the plain http of this origin', {}, { origin: 'http://heliograph.example' }],
  ['another port of this host', {}, { origin: `${PUBLIC_URL}:8443` }],
  ['the origin "null"', {}, { origin: 'null' }],
  ['neither header', {}, { origin: undefined, 'sec-fetch-site': undefined }],
  ['a page of another site', {}, { 'sec-fetch-site': 'cross-site' }],
  ['a page of a neighbouring subdomain', {}, { 'sec-fetch-site': 'same-site' }],
  ['an address bar', {}, { 'sec-fetch-site': 'none' }],
  [
    'a foreign origin that says it is ours',
    {},
    { origin: 'https://evil.example', 'sec-fetch-site': 'same-origin' },
  ],
  ['our origin from a page of another site', {}, { origin: PUBLIC_URL, 'sec-fetch-site': 'cross-site' }],
  ['a body of another kind', {}, { 'content-type': 'text/plain' }],
];

describe('a form with', () => {
  test.each(FOREIGN)('%s changes nothing', async (_name, fields, headers) => {
    await browser.get('/portal/account');
    const before = (await invitations()).length;
    const answer = await browser.post(form, { ...invite(), ...fields }, headers);
    expect(answer.statusCode).toBe(403);
    expect(answer.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(answer.body).toContain('Form refused');
    expect((await invitations()).length).toBe(before);
  });

  test('the token of another session changes nothing', async () => {
    const { browser: another } = await newUser(api, office.tenantId, 'admin');
    await another.get('/portal/account');
    const answer = await browser.post(form, { ...invite(), _csrf: another.token() });
    expect(answer.statusCode).toBe(403);
  });

  test('the token of this session two times changes nothing', async () => {
    await browser.get('/portal/account');
    const answer = await api.app.inject({
      method: 'POST',
      url: form,
      headers: {
        host: 'heliograph.example',
        origin: PUBLIC_URL,
        'content-type': 'application/x-www-form-urlencoded',
        cookie: [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
      },
      payload: `_csrf=${browser.token()}&_csrf=${browser.token()}&email=a%40b.example&role=member`,
    });
    expect(answer.statusCode).toBe(403);
  });

  test('the token of this session, from this site, is let through, by either header alone too', async () => {
    await browser.get('/portal/account');
    const token = browser.token();
    for (const headers of [{}, { origin: undefined }, { 'sec-fetch-site': undefined }]) {
      const answer = await browser.post(form, { ...invite(), _csrf: token }, headers);
      expect(answer.statusCode).toBe(200);
      expect(answer.body).toContain('/portal/invitations/');
    }
  });

  test('the origin of the very address that is used is let through: a portal has one on its own machine', async () => {
    await browser.get('/portal/account');
    const headers = { host: '127.0.0.1:8080', origin: 'http://127.0.0.1:8080' };
    expect((await browser.post(form, invite(), headers)).statusCode).toBe(200);
    const foreign = { ...headers, origin: 'http://127.0.0.1:8081' };
    expect((await browser.post(form, invite(), foreign)).statusCode).toBe(403);
  });

  test('JSON and the token is taken as a form, and without it refused', async () => {
    await browser.get('/portal/account');
    const headers = {
      host: 'heliograph.example',
      origin: PUBLIC_URL,
      cookie: [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
    };
    const send = (payload: object) => api.app.inject({ method: 'POST', url: form, headers, payload });
    expect((await send(invite())).statusCode).toBe(403);
    expect((await send([])).statusCode).toBe(403);
    expect((await send({ ...invite(), _csrf: browser.token() })).statusCode).toBe(200);
  });
});

describe('the sign-in form', () => {
  const fields = () => ({ email, password: PASSWORD, next: '/portal' });

  test('needs the cookie that its page set: nobody can be signed in by a page of others', async () => {
    const visitor = openBrowser(api.app);
    const page = await visitor.get('/portal/sign-in');
    const cookie = page.cookies.find(({ name }) => name === '__Host-heliograph-form');
    expect(cookie).toMatchObject({ path: '/', secure: true, httpOnly: true, sameSite: 'Lax' });
    const token = visitor.token();
    visitor.cookies.clear();
    expect((await visitor.post('/portal/sign-in', { ...fields(), _csrf: token })).statusCode).toBe(403);
    await visitor.get('/portal/sign-in');
    expect((await visitor.post('/portal/sign-in', { ...fields(), _csrf: token })).statusCode).toBe(403);
    await visitor.get('/portal/sign-in');
    expect((await visitor.post('/portal/sign-in', fields())).statusCode).toBe(303);
  });

  test.each(FOREIGN.slice(2))('refuses %s', async (_name, _fields, headers) => {
    const visitor = openBrowser(api.app);
    await visitor.get('/portal/sign-in');
    expect((await visitor.post('/portal/sign-in', fields(), headers)).statusCode).toBe(403);
  });

  test('that stood in a second window when somebody signed in works still', async () => {
    const visitor = openBrowser(api.app);
    await visitor.get('/portal/sign-in');
    const token = visitor.token();
    const cookie = visitor.cookies.get('__Host-heliograph-form') ?? '';
    await visitor.post('/portal/sign-in', fields());
    visitor.cookies.set('__Host-heliograph-form', cookie);
    expect((await visitor.post('/portal/sign-in', { ...fields(), _csrf: token })).statusCode).toBe(303);
    expect((await visitor.post(form, { ...invite(), _csrf: token })).statusCode).toBe(403);
  });

  test.each([
    ['https://evil.example/portal', '/portal'],
    ['//evil.example/portal/x', '/portal'],
    ['/\\evil.example/portal', '/portal'],
    ['\\/evil.example', '/portal'],
    ['/portal/../../evil', '/portal'],
    ['/portalx', '/portal'],
    ['/portal/@evil.example', '/portal/@evil.example'],
    ['javascript:alert(1)', '/portal'],
    ['/portal\r\nset-cookie: a=b', '/portal'],
    ['/portal/account?done=password', '/portal/account?done=password'],
  ])('leads to no place but ours: %j', async (next, location) => {
    const visitor = openBrowser(api.app);
    await visitor.get('/portal/sign-in');
    const answer = await visitor.post('/portal/sign-in', { ...fields(), next });
    expect(answer.headers.location).toBe(location);
  });
});

test('a URL that is malformed is refused by a page, without a session too', async () => {
  for (const url of ['/portal/%zz', '/portal/w/%c3%28/users', `/portal/${'x'.repeat(9_000)}`]) {
    const answer = await openBrowser(api.app).get(url);
    expect([400, 404, 303], url).toContain(answer.statusCode);
    if (answer.statusCode !== 303) expect(answer.headers['content-type']).toBe('text/html; charset=utf-8');
  }
  expect((await browser.get('/portal/')).headers.location).toBe('/portal');
});

test('every answer is kept by nobody, runs nothing inline and is shown in no frame', async () => {
  const paths = [
    '/portal/sign-in',
    '/portal/account',
    '/portal/nothing',
    `${office.path}/users`,
    '/portal/set-up',
  ];
  for (const path of paths) {
    const { headers } = await browser.get(path);
    expect(headers['cache-control'], path).toBe('no-store');
    expect(headers['referrer-policy']).toBe('same-origin');
    expect(headers['x-content-type-options']).toBe('nosniff');
    const policy = String(headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'; style-src 'self'; script-src 'self'");
    expect(policy).toContain("form-action 'self'; frame-ancestors 'none'; base-uri 'none'");
    expect(policy).not.toContain('unsafe');
  }
});
