import { beforeEach, describe, expect, test } from 'vitest';
import { noteTokenRefused } from '../../../../src/features/accounts/access-tokens.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { turn } from '../../alerts/alerts-fixtures.ts';
import { apiOfFile, testConfig } from '../../api/api-harness.ts';
import { markupProblems } from '../markup-problems.ts';
import { newOffice, newUser, type Office, type PortalBrowser } from '../portal-browser.ts';

const mail = { HELIOGRAPH_SMTP_URL: 'smtp://127.0.0.1:9', HELIOGRAPH_MAIL_FROM: 'alerts@gateway.example' };
const api = apiOfFile(async () => ({ config: testConfig(mail) }));
let store: Office;
let other: Office;
let admin: PortalBrowser;
let member: PortalBrowser;
let stranger: PortalBrowser;
let operator: PortalBrowser;

beforeEach(async () => {
  store = await newOffice(api);
  other = await newOffice(api, 'Fixture Bazaar');
  [admin, stranger] = [store.admin, other.admin];
  ({ browser: member } = await newUser(api, store.tenantId));
  ({ browser: operator } = await newUser(api, null));
  // An operator sees the alerts of all tenants: those of the tests before are over.
  await execute(api.database, 'delete from alerts');
  await execute(api.database, 'update wabas set token_refused_at = null, token_problem = null');
  await noteTokenRefused(api.database, store.wabaId, 'Session <b>has</b> expired');
  await execute(
    api.database,
    `update wabas set token_refused_at = now() - interval '1 hour' where waba_id = :wabaId`,
    { wabaId: store.wabaId },
  );
  await turn(api.database);
});

const bellOf = (body: string) => /class="bell" href="\/portal\/alerts" aria-label="([^"]*)"/.exec(body)?.[1];

describe('the bell', () => {
  test('counts on every page what the user has not read, of the own tenant', async () => {
    for (const browser of [admin, member, operator]) {
      expect(bellOf((await browser.get('/portal/account')).body)).toBe('Alerts, 1 new');
    }
    expect(bellOf((await stranger.get('/portal/account')).body)).toBe('Alerts');
    expect(bellOf((await admin.get(store.path)).body)).toBe('Alerts, 1 new');
  });
});

describe('the page of alerts', () => {
  test('and every other page without a WABA keeps the pages of the only WABA in the navigation', async () => {
    for (const path of ['/portal/alerts', '/portal/runbooks', '/portal/account', '/portal/nowhere'])
      for (const browser of [admin, member])
        expect((await browser.get(path)).body).toContain(
          `<li><a href="${store.path}/endpoints">Webhook Settings</a></li>`,
        );
    for (const path of [`${store.path}/deliveries/dlv_x`, `${other.path}/endpoints`]) {
      const { statusCode, body } = await admin.get(path);
      expect([statusCode, body.includes(`href="${store.path}/endpoints"`)]).toEqual([404, true]);
    }
    expect((await operator.get('/portal/alerts')).body).not.toContain(`${store.path}/endpoints"`);
  });

  test('lists the WABAs of a tenant with several in the navigation', async () => {
    const linkTo = (wabaId: string) => `<li><a href="/portal/w/${wabaId}">${wabaId}</a></li>`;
    const add = (first: number, last: number) =>
      execute(
        api.database,
        `insert into wabas (waba_id, tenant_id) select '9100000000000' || n, :tenantId from generate_series(${first}, ${last}) as n`,
        { tenantId: other.tenantId },
      );
    const pages = async () => [
      (await stranger.get('/portal/alerts')).body,
      (await stranger.get('/portal/runbooks')).body,
    ];
    await add(10, 10);
    for (const body of await pages()) {
      expect(await markupProblems(body)).toEqual([]);
      for (const wabaId of [other.wabaId, '910000000000010']) expect(body).toContain(linkTo(wabaId));
      expect(body).not.toContain(linkTo(store.wabaId));
      expect(body).not.toContain('All WABAs');
    }
    await add(11, 40);
    for (const body of await pages()) expect(body).toContain('<li><a href="/portal">All WABAs</a></li>');
    expect((await operator.get('/portal/alerts')).body).not.toContain('<h2>WABAs</h2>');
    await execute(api.database, "delete from wabas where waba_id like '91%'");
  });

  test('shows what is the matter, with links to it and to the runbook, and no markup of others', async () => {
    const { body } = await admin.get('/portal/alerts');
    expect(body).toContain('Access token refused');
    expect(body).toContain('Session &lt;b&gt;has&lt;/b&gt; expired');
    expect(body).toContain(`href="${store.path}"`);
    expect(body).toContain('href="/portal/runbooks#access-token-refused"');
    expect((await operator.get('/portal/alerts')).body).toContain(
      `href="/portal/operator/wabas/${store.wabaId}"`,
    );
    expect((await stranger.get('/portal/alerts')).body).toContain('No open alerts');
    for (const path of ['/portal/alerts', '/portal/alerts?state=all', '/portal/runbooks']) {
      for (const browser of [admin, operator]) {
        expect(await markupProblems((await browser.get(path)).body)).toEqual([]);
      }
    }
    expect((await admin.get('/portal/alerts?state=other')).statusCode).toBe(400);
    expect((await admin.get('/portal/alerts?before=1')).statusCode).toBe(400);
  });

  test('runbooks are those that the viewer can be told of', async () => {
    expect((await operator.get('/portal/runbooks')).body).toContain('id="intake-is-behind"');
    expect((await admin.get('/portal/runbooks')).body).not.toContain('id="intake-is-behind"');
    expect((await admin.get('/portal/runbooks')).body).toContain('id="endpoint-failing"');
  });

  test('marks one as read for this user alone, members too, and none of another tenant', async () => {
    const [alert] = await query<{ id: string }>(api.database, 'select id from alerts');
    const id = alert?.id ?? '';
    const read = (browser: PortalBrowser, fields: Record<string, string>) =>
      browser.get('/portal/alerts').then(() => browser.post('/portal/alerts/read', fields));
    expect((await read(stranger, { alert: id })).statusCode).toBe(303);
    expect(await query(api.database, 'select 1 from alert_reads')).toEqual([]);
    expect((await read(member, { alert: 'nonsense' })).statusCode).toBe(404);
    expect((await read(member, { alert: id })).headers.location).toBe('/portal/alerts?done=read');
    expect(bellOf((await member.get('/portal/alerts')).body)).toBe('Alerts');
    expect(bellOf((await admin.get('/portal/alerts')).body)).toBe('Alerts, 1 new');
    await read(admin, {});
    expect(bellOf((await admin.get('/portal/alerts')).body)).toBe('Alerts');
    expect((await admin.get('/portal/alerts')).body).toContain('Access token refused');
  });

  test('switches e-mails on and off: on for administrators and operators until they choose', async () => {
    const STOP = 'Stop these e-mails';
    const START = 'Send me e-mails';
    expect((await operator.get('/portal/alerts')).body).toContain(STOP);
    expect((await member.get('/portal/alerts')).body).toContain(START);
    expect((await admin.get('/portal/alerts')).body).toContain(STOP);
    await admin.post('/portal/alerts/mail', { mail: 'off' });
    expect((await admin.get('/portal/alerts')).body).toContain(START);
    await member.post('/portal/alerts/mail', { mail: 'on' });
    expect((await member.get('/portal/alerts')).body).toContain(STOP);
  });
});

describe('where links go by e-mail', () => {
  const mails = () =>
    query<{ kind: string; recipient: string; content: string }>(
      api.database,
      'select kind, recipient, content_sealed as content from mails order by created_at, id',
    );

  test('the one who invites sees that it was sent and not the link', async () => {
    const users = `${store.path}/users`;
    await admin.get(users);
    const answer = await admin.post(`${users}/invite`, { email: 'new@store.example', role: 'member' });
    expect([answer.statusCode, answer.headers.location]).toEqual([303, `${users}?done=mailed`]);
    const { body } = await admin.get(`${users}?done=mailed`);
    expect(body).toContain('on its way by e-mail');
    expect(body).toContain('new@store.example');
    expect(body).not.toContain('/portal/invitations/');
    expect(await mails()).toEqual([
      { kind: 'invitation', recipient: 'new@store.example', content: expect.stringMatching(/^v1:k1:/) },
    ]);
  });
});
