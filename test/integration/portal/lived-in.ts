import { noteTemplates } from '../../../src/features/accounts/templates.ts';
import { noteOptOut } from '../../../src/features/customers/tenant-opt-outs.ts';
import { createKey } from '../../../src/features/keys/api-keys.ts';
import { decideKeyRequest, requestKey } from '../../../src/features/keys/key-requests.ts';
import { createPlatformKey } from '../../../src/features/keys/platform-keys.ts';
import { addRecipients } from '../../../src/features/messages/broadcasts/broadcast-lines.ts';
import { createBroadcast } from '../../../src/features/messages/broadcasts/broadcasts.ts';
import { queueMessage } from '../../../src/features/messages/send/queue-message.ts';
import { makeUsageFolding } from '../../../src/features/messages/usage-days.ts';
import { startReplay } from '../../../src/features/replays/replays.ts';
import { inviteUser } from '../../../src/features/users/invitations.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { fixtureBody, fixtureNames } from '../../support/upstream-fixtures.ts';
import { addErasure } from '../api/account-objects.ts';
import { NUMBER, OTHER_WABA, type TestApi, WABA } from '../api/api-harness.ts';
import { addActivity, addDelivery } from './delivery-fixtures.ts';
import { HOSTILE_TEXTS } from './hostile-texts.ts';
import { addUser, type PortalBrowser, tenantOf } from './portal-browser.ts';

let next = 0;

/** A text that would like to be markup; another one each time. */
function hostile(): string {
  next += 1;
  return HOSTILE_TEXTS[next % HOSTILE_TEXTS.length] ?? '';
}

/** What people outside choose freely in bodies of upstream. */
const FREE = new Set([
  ...[
    'name',
    'body',
    'caption',
    'filename',
    'title',
    'description',
    'formatted_name',
    'first_name',
    'address',
  ],
  ...['username', 'payload', 'text', 'details', 'message', 'emoji', 'response_json', 'product_retailer_id'],
]);

function spoilt(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(spoilt);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, member]) => {
    return [key, FREE.has(key) && typeof member === 'string' ? hostile() : spoilt(member)];
  });
  return Object.fromEntries(entries);
}

/** Every kind of body that upstream sends, from people who mean no good; one is of a field that nobody knows. */
function spoiltBodies(): Buffer[] {
  const bodies = fixtureNames().map((name) => JSON.parse(fixtureBody(name).toString()));
  const unknown = { id: WABA, changes: [{ field: hostile(), value: { name: hostile() } }] };
  const all = [...bodies.map(spoilt), { object: 'whatsapp_business_account', entry: [unknown] }];
  return all.map((body) => Buffer.from(JSON.stringify(body)));
}

/** Gives the first tenant everything that a page can show, all of it from people who mean no good. */
export async function liveIn(
  api: TestApi,
): Promise<{ operator: PortalBrowser; admin: PortalBrowser; member: PortalBrowser }> {
  const { database } = api;
  const tenantId = await tenantOf(database, WABA);
  for (const path of ['a', 'b', 'c']) {
    const { id } = await addEndpoint(database, WABA, `https://receiver.example/${path}?x='><svg/onload=1>`);
    await execute(database, 'update webhook_endpoints set description = :hostile where id = :id', {
      hostile: hostile(),
      id,
    });
    await addActivity(database, id, 24);
  }
  await execute(
    database,
    `update endpoint_health set mode = 'disabled', mode_reason = :hostile, mode_changed_at = now(), failing_since = now()
      where endpoint_id = (select max(endpoint_id) from endpoint_health)`,
    { hostile: hostile() },
  );
  await takeIn(database, ...spoiltBodies());
  await makeUsageFolding(database)(new AbortController().signal);
  await execute(
    database,
    `update media set state = 'stored', object_key = 'm' || message_id, served_type = mime_type, size_bytes = 9,
            sha256 = '00' where message_id % 2 = 0`,
  );
  await addAttempts(database);
  const optOut = { scope: 'all', source: 'portal', reason: hostile() } as const;
  const request = { phoneNumberId: NUMBER, to: '+12025550177', type: 'text', text: { body: hostile() } };
  const sender = { wabaId: WABA, keyId: null, maxMessagesPerDay: null, recipients: 'any' } as const;
  const times = { sendAt: new Date(Date.now() + 3_600_000), notAfter: null };
  await queueMessage(database, sender, request, { key: null, times });
  await noteOptOut({ database, actor: SYSTEM }, WABA, { phone: '12025550143' }, optOut);
  await addErasure(database, WABA);
  const user = (email: string, role: string) =>
    addUser(api, {
      email,
      role,
      tenantId: role === 'operator' ? null : tenantId,
      name: `Asha ${HOSTILE_TEXTS[1]}`,
    });
  const people = {
    operator: await user('op@host.example', 'operator'),
    admin: await user('admin@store.example', 'admin'),
    member: await user('member@store.example', 'member'),
  };
  await execute(database, 'update tenants set business_name = :hostileTexts where id = :tenantId', {
    hostileTexts: HOSTILE_TEXTS[0],
    tenantId,
  });
  await addRequests(database, tenantId);
  return people;
}

async function addAttempts(database: Database): Promise<void> {
  for (const [index, text] of HOSTILE_TEXTS.entries()) {
    const answer = {
      responseBody: `${text} ${hostile()}`,
      responseHeaders: { 'x-note': text, server: hostile() },
    };
    await addDelivery(database, {
      eventId: `wamid.${text}`,
      state: (['failed', 'delivered', 'pending', 'dropped'] as const)[index % 4] ?? 'failed',
      error: text,
      dataJson: JSON.stringify({ message: { text: { body: text } } }),
      attempts: [
        { errorClass: 'timeout', errorMessage: text, durationMs: 15_000 },
        { status: index % 4 === 1 ? 200 : 503, errorMessage: text, ...answer },
      ],
      minutesAgo: index + 1,
    });
  }
}

async function addRequests(database: Database, tenantId: string): Promise<void> {
  const tools = { database, actor: SYSTEM };
  const authority = { actor: SYSTEM, tenantId, userId: null };
  await inviteUser({ database }, authority, { email: 'new@store.example', role: 'member', tenantId });
  await createKey(tools, WABA, { name: HOSTILE_TEXTS[1], expiresAt: null });
  await createKey(tools, OTHER_WABA, { name: HOSTILE_TEXTS[2], expiresAt: null });
  await createPlatformKey(tools, { name: HOSTILE_TEXTS[1] }, 'development');
  const users = await query<{ id: string; email: string }>(
    database,
    'select id, email from users order by id',
  );
  for (const [index, { id, email }] of users.entries()) {
    const wanted = {
      purpose: hostile(),
      scopes: ['read'],
      validDays: 90,
      replacesKeyId: null,
      overlapHours: null,
    };
    const request = await requestKey(tools, WABA, { id, name: email }, wanted as never);
    const state = (['approved', 'denied'] as const)[index];
    if (state !== undefined) await decideKeyRequest(tools, request.id, { state, note: hostile() });
  }
  await startReplay(tools, WABA, { states: ['failed'] }, HOSTILE_TEXTS[0]);
  const content = JSON.stringify({ components: [{ type: 'BODY', text: `{{1}} ${HOSTILE_TEXTS[0]}` }] });
  const named = {
    templateId: '1',
    name: 'winter_sale',
    language: 'en',
    status: 'APPROVED',
    category: 'MARKETING',
  };
  const nothing = { quality: null, rejectedReason: null, isChanged: false };
  await noteTemplates(database, [{ wabaId: WABA, ...named, ...nothing, content, at: new Date() }]);
  const { id: broadcastId } = await createBroadcast(
    tools,
    WABA,
    {
      name: HOSTILE_TEXTS[0],
      phoneNumberId: NUMBER,
      template: { name: HOSTILE_TEXTS[0], language: { code: 'en' } },
    },
    { requestedBy: HOSTILE_TEXTS[0], limits: null },
  );
  const parameters = [HOSTILE_TEXTS[1] ?? ''];
  const recipients = [{ to: '12025550143', ref: HOSTILE_TEXTS[0] ?? '', parameters }];
  await addRecipients(tools, { wabaId: WABA, broadcastId }, recipients);
}
