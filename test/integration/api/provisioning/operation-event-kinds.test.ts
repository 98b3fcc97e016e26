import { beforeAll, expect, test } from 'vitest';
import { removeNumber } from '../../../../src/features/accounts/remove-number.ts';
import { enableEndpoint, holdEndpoint } from '../../../../src/features/endpoints/endpoint-modes.ts';
import { runSetupStep } from '../../../../src/features/setup-links/run-set-up.ts';
import { expireSetupLinks } from '../../../../src/features/setup-links/setup-links.ts';
import { disableMember, enableMember } from '../../../../src/features/users/members.ts';
import { followConditions } from '../../../../src/ops/alerts/alerts.ts';
import { eraseCustomer, eraseWaba } from '../../../../src/ops/erasures/erasures.ts';
import { OPERATION_EVENT_TYPES, readOperationEvents } from '../../../../src/ops/feed/operation-events.ts';
import { OPERATOR_COMMAND } from '../../../../src/platform/audit/audit.ts';
import { execute, queryValue } from '../../../../src/platform/postgres/sql.ts';
import { type OpenApiDocument, operationsOf, validatorOf } from '../../../support/openapi-document.ts';
import { eraseAll, startErasureWorld, toolsFor, WABA } from '../../erasures/erasure-world.ts';
import { ASHA, fill, tracesOf } from '../../erasures/filled-world.ts';
import { openBrowser, PASSWORD } from '../../portal/portal-browser.ts';
import { authorizedLink, newCustomer, newLink, run, setupStack } from '../../setup-links/setup-stack.ts';
import { apiOfFile, PUBLIC_URL, testConfig } from '../api-harness.ts';
import { fresh, type PlatformClient, platformClient, tenantOf } from './platform-client.ts';

/** Each type of events: what writes it, that it is written with the change or not at all, and what it says. */

const api = apiOfFile(async () => ({
  config: testConfig({ HELIOGRAPH_PORTAL_PRODUCT_ORIGINS: 'https://crm.example' }),
}));

/** What people wrote, and where they are. */
const PRIVATE = [
  'Secret Business',
  'secret purpose',
  'secret reason',
  'asha@store.example',
  '93.184.216.34',
  'EAAG-secret',
];
const EMAIL = 'asha@store.example';

type World = Awaited<ReturnType<typeof world>>;

let ask: PlatformClient;
let document: OpenApiDocument;

beforeAll(async () => {
  ask = await platformClient(api);
  document = (await api.app.inject('/api/platform/openapi.json')).json();
});

async function world() {
  const { name, wabaId, number } = await tenantOf(ask);
  const tenant = `/tenants/${name}`;
  const tenantId = String((await ask('GET', tenant)).body.userId);
  const tools = { database: api.database, actor: OPERATOR_COMMAND };
  const authority = { actor: OPERATOR_COMMAND, tenantId, userId: null };
  const session = { externalId: 'u_17', email: EMAIL, name: 'Asha' };
  /** Throws where the platform API refuses. */
  const must = async (method: Parameters<PlatformClient>[0], path: string, body?: object) => {
    const answer = await ask(method, `${tenant}${path}`, body);
    if (answer.status >= 300) throw new Error(`${method} ${path} returned ${answer.status}`);
    return answer.body;
  };
  const endpoint = async () =>
    String(
      await queryValue(api.database, 'select id from webhook_endpoints where waba_id = :wabaId', { wabaId }),
    );
  const member = async () =>
    String(
      await queryValue(api.database, 'select user_id from memberships where tenant_id = :tenantId', {
        tenantId,
      }),
    );
  const visit = async (url: string, form: Record<string, string>) => {
    const path = url.slice(PUBLIC_URL.length);
    const browser = openBrowser(api.app);
    await browser.get(path);
    const { statusCode } = await browser.post(path, form);
    if (statusCode !== 303) throw new Error(`${path} returned ${statusCode}`);
  };
  const alert = async (isOver: boolean) => {
    const condition = {
      kind: 'access_token_refused',
      tenantId,
      wabaId,
      subject: wabaId,
      latestAt: null,
    } as const;
    const found = { ...condition, reason: `secret reason of ${EMAIL}`, details: { since: EMAIL } };
    await followConditions(api.database, [
      { kind: 'access_token_refused', isWhole: true, conditions: isOver ? [] : [found] },
    ]);
  };
  const made = { invite: '', link: '', erasure: '' };
  const erasing = { ...toolsFor(api.database, testConfig()), actor: OPERATOR_COMMAND };
  const people = { authority, session, member, visit };
  const setup = await setUps();
  return { name, wabaId, number, tools, must, endpoint, alert, made, erasing, ...people, ...setup };
}

/** Links before the step that ends them. */
async function setUps() {
  const stack = setupStack(api.database);
  const authorized = async (shares: (wabaId: string) => string[], steps: number) => {
    const { tenantId, wabaId } = await newCustomer(stack);
    const { id } = await authorizedLink(stack, tenantId, shares(wabaId));
    if (steps > 0) await run(stack, id, steps);
    return { id, wabaId };
  };
  const { id: one, wabaId } = await authorized((shared) => [shared], 3);
  const { id: other } = await authorized((shared) => [shared], 3);
  const { id: withoutWaba } = await authorized(() => [], 0);
  const links = { one, other, withoutWaba, wabaId };
  const { tenantId } = await newCustomer(stack);
  const { link } = await newLink(stack, tenantId);
  await execute(api.database, 'update setup_links set expires_at = now() where id = :id', { id: link.id });
  return { stack, links };
}

const SETUP_LINK = expect.stringMatching(/^sl_\d+$/);

const KEY = { name: 'secret purpose', scopes: ['send'] };

/** In order: each is possible after those before it. */
const CAUSES: readonly [type: string, cause: (world: World) => Promise<unknown>, data?: object][] = [
  [
    'tenant.created',
    async () => {
      const { status } = await ask('PUT', `/tenants/${fresh().name}`, { businessName: 'Secret Business' });
      if (status !== 201) throw new Error(`returned ${status}`);
    },
  ],
  ['tenant.updated', ({ must }) => must('PUT', '', { businessName: 'Secret Business' })],
  [
    'tenant.suspended',
    ({ must }) => must('PATCH', '', { state: 'suspended', suspendReason: 'secret reason' }),
  ],
  ['tenant.resumed', ({ must }) => must('PATCH', '', { state: 'active' })],
  ['waba.saved', ({ must, wabaId }) => must('PUT', `/wabas/${wabaId}`, { accessToken: 'EAAG-secret' })],
  ['waba.numbers_changed', ({ tools, wabaId, number }) => removeNumber(tools, wabaId, number)],
  ['key.created', ({ must, wabaId }) => must('PUT', `/wabas/${wabaId}/keys/k`, KEY), { scopes: 'send' }],
  ['key.updated', ({ must, wabaId }) => must('POST', `/wabas/${wabaId}/keys/k/rotate`, { overlapHours: 1 })],
  ['key.revoked', ({ must, wabaId }) => must('DELETE', `/wabas/${wabaId}/keys/k`)],
  [
    'endpoint.created',
    ({ must, wabaId }) => must('PUT', `/wabas/${wabaId}/endpoints/crm`, { url: 'https://93.184.216.34/x' }),
  ],
  [
    'endpoint.updated',
    ({ must, wabaId }) => must('PUT', `/wabas/${wabaId}/endpoints/crm`, { url: 'https://93.184.216.34/y' }),
  ],
  ...(['paused', 'disabled'] as const).map((mode): (typeof CAUSES)[number] => [
    `endpoint.${mode}`,
    async ({ tools, wabaId, endpoint }) =>
      await holdEndpoint(tools, wabaId, { id: await endpoint(), mode, reason: 'secret reason' }),
  ]),
  [
    'endpoint.enabled',
    async ({ tools, wabaId, endpoint }) =>
      await enableEndpoint(tools, wabaId, { id: await endpoint(), waiting: 'send', by: 'secret reason' }),
  ],
  ['endpoint.deleted', ({ must, wabaId }) => must('DELETE', `/wabas/${wabaId}/endpoints/crm`)],
  [
    'user.invited',
    ({ must }) => must('PUT', '/users/u_1', { email: EMAIL, role: 'member' }),
    { userRef: 'u_1', role: 'member' },
  ],
  ['user.uninvited', ({ must }) => must('DELETE', '/users/u_1'), { userRef: 'u_1' }],
  [
    'user.invited',
    async ({ must, made }) => {
      made.invite = (await must('PUT', '/users/u_17', { email: EMAIL, role: 'member' })).inviteUrl;
    },
  ],
  [
    'user.created',
    async ({ made, visit }) => await visit(made.invite, { name: 'Asha', password: PASSWORD }),
    { userRef: 'u_17', userId: expect.stringMatching(/^\d+$/), role: 'member' },
  ],
  [
    'user.updated',
    ({ must }) => must('PUT', '/users/u_17', { email: EMAIL, role: 'admin' }),
    { userRef: 'u_17', role: 'admin' },
  ],
  [
    'user.disabled',
    async ({ tools, authority, member }) => await disableMember(tools, authority, await member()),
  ],
  [
    'user.enabled',
    async ({ tools, authority, member }) => await enableMember(tools, authority, await member()),
  ],
  [
    'portal_session.created',
    async ({ must, session, made }) => {
      made.link = (await must('POST', '/portal-sessions', { user: session, role: 'admin' })).url;
    },
    { userRef: 'u_17', portalSessionId: expect.stringMatching(/^ps_\d+$/), role: 'admin' },
  ],
  [
    'portal_session.opened',
    async ({ made, visit }) => await visit(made.link, {}),
    { portalSessionId: expect.stringMatching(/^ps_/) },
  ],
  [
    'portal_session.ended',
    ({ must }) => must('DELETE', '/portal-sessions?user=u_17'),
    { userRef: 'u_17', ended: 1 },
  ],
  ['user.removed', ({ must }) => must('DELETE', '/users/u_17'), { userRef: 'u_17' }],
  ['alert.opened', ({ alert }) => alert(false), { kind: 'access_token_refused' }],
  ['alert.resolved', ({ alert }) => alert(true), { kind: 'access_token_refused' }],
  [
    'setup_link.failed',
    async ({ stack, links }) => await runSetupStep(stack.tools, links.withoutWaba),
    { setupLinkId: SETUP_LINK, step: 'waba', code: 'no_waba', retryable: true },
  ],
  [
    'setup_link.done',
    async ({ stack, links }) => await runSetupStep(stack.tools, links.one),
    { setupLinkId: SETUP_LINK, phoneNumberId: expect.any(String) },
  ],
  [
    'number.connected',
    async ({ stack, links }) => await runSetupStep(stack.tools, links.other),
    { setupLinkId: SETUP_LINK, phoneNumberId: expect.any(String) },
  ],
  [
    'setup_link.expired',
    async ({ erasing, links, made }) => {
      await expireSetupLinks(api.database, 100);
      // Asked for here: its end alone is the next cause.
      made.erasure = (await eraseWaba(erasing, links.wabaId)).erasureId;
    },
    { setupLinkId: SETUP_LINK },
  ],
  ['erasure.done', async ({ erasing, made }) => await eraseAll(erasing, made.erasure)],
  ['waba.removed', ({ must, wabaId }) => must('DELETE', `/wabas/${wabaId}`)],
  ['tenant.removed', ({ must, name }) => must('DELETE', '', { confirm: name })],
];

test('each change is written with its event or not at all, and the event tells no name, address, URL, secret or reason', async () => {
  const given = await world();
  const validate = validatorOf(document, { $ref: '#/components/schemas/OperationEvent' });
  const last = async () =>
    (await queryValue<string>(api.database, 'select coalesce(max(position), 0)::text from audit_chain')) ??
    '0';
  const behind = async (after: string) =>
    (await readOperationEvents(api.database, { types: ['*'], tenantId: null, after, limit: 1_000 })).events;
  const seen = new Set<string>();
  for (const [type, cause, data = {}] of CAUSES) {
    const place = await last();
    // No entry, no change: the same change is possible afterwards.
    await execute(api.database, 'alter table audit_log add constraint refused check (false) not valid');
    await expect(cause(given), type).rejects.toThrow();
    await execute(api.database, 'alter table audit_log drop constraint refused');
    expect(await behind(place), type).toEqual([]);
    await cause(given);
    const events = await behind(place);
    const event = events.find((one) => one.type === type);
    expect(event?.data, type).toMatchObject(data);
    for (const one of events)
      expect(validate(JSON.parse(JSON.stringify(one))), JSON.stringify(one)).toEqual([]);
    for (const text of PRIVATE) expect(JSON.stringify(events)).not.toContain(text);
    seen.add(type);
  }
  expect([...seen].sort()).toEqual([...OPERATION_EVENT_TYPES].sort());
});

test('nothing that happens to a customer is in the feed, not even the erasure of the customer', async () => {
  const erasing = await startErasureWorld();
  await fill(erasing);
  const { erasureId } = await eraseCustomer(erasing.tools, WABA, { phone: ASHA.waId });
  await erasing.erase(erasureId);
  const all = { types: ['*'], tenantId: null, after: '0', limit: 1_000 };
  const { events } = await readOperationEvents(erasing.database, all);
  expect(events.map(({ type }) => type)).toContain('erasure.done');
  for (const trace of tracesOf(ASHA)) expect(JSON.stringify(events)).not.toContain(trace);
});

test('each type is a webhook of the document', () => {
  expect(operationsOf(document, 'webhooks').map(({ path }) => path)).toEqual(OPERATION_EVENT_TYPES);
});
