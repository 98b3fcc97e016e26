import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { decideKeyRequest, requestKey } from '../../src/features/keys/key-requests.ts';
import { inviteUser } from '../../src/features/users/invitations.ts';
import { SYSTEM } from '../../src/platform/audit/audit.ts';
import type {
  EmbeddedDescription,
  EmbeddedTenant,
} from '../../src/platform/local-stack/embedded-description.ts';
import { type Database, openDatabase } from '../../src/platform/postgres/database.ts';
import { execute, query } from '../../src/platform/postgres/sql.ts';

/** What the pictures are of. */
export type LivedPortal = {
  wabaId: string;
  endpointId: string;
  failedDelivery: string;
  conversationId: string;
  keyRequestId: string;
};

const ASHA = { from: '12025550143', name: 'Asha Tester' };
const FARAH = { from: '12025550150', name: 'Farah Fixture' };
const KIM = { from: '12025550161', name: 'Kim Sample' };

/** What came in before the pictures are taken: people write, a server fails for a while, keys are asked for. */
export async function livePortal(stack: EmbeddedDescription): Promise<LivedPortal> {
  const [tenant] = stack.tenants;
  if (tenant === undefined) throw new Error('the demonstration has no tenant');
  const database = openDatabase({ url: stack.postgresUrl, poolMax: 2, applicationName: 'screenshots' });
  try {
    if (!(await wasLivedIn(database))) await live(stack, tenant, database);
    return await found(database, tenant);
  } finally {
    await database.destroy();
  }
}

async function wasLivedIn(database: Database): Promise<boolean> {
  return (await query(database, 'select 1 from api_key_requests limit 1')).length > 0;
}

async function live(stack: EmbeddedDescription, tenant: EmbeddedTenant, database: Database): Promise<void> {
  const number = tenant.phoneNumberIds[0] ?? '';
  const post = (url: string, body: unknown, apiKey = '') => send(url, body, apiKey);
  const write = (who: object, message: object) =>
    post(`${stack.sandboxUrl}/sandbox/inbound`, { ...who, phoneNumberId: number, ...message });
  const answer = (to: string, message: object) =>
    post(`${stack.apiUrl}/api/external/messages`, { phoneNumberId: number, to, ...message }, tenant.apiKey);
  const api = (path: string, body: object) =>
    post(`${stack.apiUrl}/api/external${path}`, body, tenant.apiKey) as Promise<{ id: string }>;

  for (const [who, lines] of [
    [KIM, 20],
    [FARAH, 20],
    [ASHA, 2],
  ] as const) {
    for (let n = 0; n < lines; n += 1) await write(who, { type: 'text', body: LINES[n % LINES.length] });
  }
  await sleep(3_000);
  await spreadOverDay(database, tenant);
  const hook = `${stack.receiverUrl}/webhook`;
  await api('/webhook-endpoints', { url: `${hook}/erp`, description: 'ERP', eventTypes: ['message'] });
  const old = await api('/webhook-endpoints', { url: `${hook}/old-crm`, description: 'Old CRM' });
  await api(`/webhook-endpoints/${old.id}/pause`, { reason: 'moving to the new CRM' });
  await write(ASHA, { type: 'text', body: 'Do you have this shoe in blue?' });
  await write(ASHA, { type: 'image', mediaId: await picture(stack), caption: 'This one, size 41' });
  await sleep(2_000);
  await answer(ASHA.from, { type: 'text', text: { body: 'Yes! Both sizes are here.' } });
  const buttons = ['Size 41', 'Size 42'].map((title) => ({ type: 'reply', reply: { id: title, title } }));
  const interactive = {
    type: 'button',
    body: { text: 'Which one shall we keep for you?' },
    action: { buttons },
  };
  await answer(ASHA.from, { type: 'interactive', interactive });
  await sleep(3_000);
  const place = { latitude: 52.52, longitude: 13.405, title: 'Sample Square', address: '1 Example Ave' };
  await write(ASHA, { type: 'location', ...place });
  await write(ASHA, { type: 'text', body: 'Size 41, please. I come by at five.' });
  await sleep(8_000);
  await people(database, tenant);
}

const LINES = [
  'Good morning!',
  'Are you open on Sunday?',
  'Where is my parcel?',
  'Thank you, that was quick.',
  'Can I change the address?',
  'Do you take cards?',
];

async function picture(stack: EmbeddedDescription): Promise<string> {
  const bytes = readFileSync(new URL('../../dev/console/assets/sandbox-shoe.jpg', import.meta.url));
  const response = await fetch(`${stack.sandboxUrl}/sandbox/media?filename=shoe.jpg`, {
    method: 'POST',
    headers: { 'content-type': 'image/jpeg' },
    body: new Uint8Array(bytes),
  });
  return ((await response.json()) as { id: string }).id;
}

async function send(url: string, body: unknown, apiKey: string): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(apiKey !== '' && { authorization: `Bearer ${apiKey}` }),
    },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} was answered ${response.status}: ${text}`);
  return text === '' ? {} : JSON.parse(text);
}

/** As if what was just delivered had come in the course of a day, for charts with more than one hour. */
async function spreadOverDay(database: Database, { endpointId }: EmbeddedTenant): Promise<void> {
  const hours = `(('x' || substr(md5(cast(id as text)), 1, 4))::bit(16)::integer % 23)`;
  await database.raw(
    `update deliveries set created_at = created_at - ${hours} * interval '1 hour',
            finished_at = finished_at - ${hours} * interval '1 hour' where state = 'delivered'`,
  );
  await execute(
    database,
    `insert into endpoint_minutes (endpoint_id, minute, successes, failures, total_ms)
     select :endpointId, date_trunc('minute', now()) - h * interval '1 hour', 24 + 9 * (h % 5) + 40 * sin(h / 24.0 * 3.1416) , case when h in (7, 8) then 11 else h % 3 / 2 end, 1900
       from generate_series(1, 23) h on conflict do nothing`,
    { endpointId },
  );
}

/** Users, and keys that were asked for. */
async function people(database: Database, tenant: EmbeddedTenant): Promise<void> {
  const tenantId = String(tenant.userId);
  const authority = { actor: SYSTEM, tenantId: null, userId: null };
  await inviteUser({ database }, authority, { email: 'mo@store.example', role: 'member', tenantId });
  await inviteUser({ database }, authority, {
    email: 'night@heliograph.example',
    role: 'operator',
    tenantId: null,
  });
  const users = await query<{ id: string; email: string }>(
    database,
    'select id, email from users order by id desc',
  );
  for (const [index, { id, email }] of users.entries()) {
    const purpose = ['order system, production', 'stock reports'][index] ?? 'tests';
    const wanted = {
      purpose,
      scopes: ['read', 'send'],
      validDays: 90,
      replacesKeyId: null,
      overlapHours: null,
    };
    const tools = { database, actor: { name: email, requestId: null, ip: null } };
    const request = await requestKey(tools, tenant.wabaId, { id, name: email }, wanted as never);
    if (index > 0)
      await decideKeyRequest(tools, request.id, { state: 'approved', note: 'As agreed on the phone.' });
  }
}

/** What there is to look at. */
async function found(database: Database, { wabaId, endpointId }: EmbeddedTenant): Promise<LivedPortal> {
  const one = async (sql: string): Promise<string> => {
    const [row] = await query<{ id: string }>(database, sql, { wabaId, endpointId });
    return row?.id ?? '';
  };
  const hex = (column: string) => `'dlv_' || replace(cast(${column} as text), '-', '') as id`;
  return {
    wabaId,
    endpointId,
    failedDelivery: await one(
      `select ${hex('id')} from deliveries where waba_id = :wabaId and attempts > 1 and state <> 'delivered' order by created_at desc limit 1`,
    ),
    conversationId: await one(
      `select c.id from conversations c join contacts p on p.id = c.contact_id
        where c.waba_id = :wabaId and p.wa_id = '${ASHA.from}' limit 1`,
    ),
    keyRequestId: await one(
      `select id from api_key_requests where waba_id = :wabaId and state = 'requested' order by id desc limit 1`,
    ),
  };
}
