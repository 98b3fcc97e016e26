import { noteOptOut } from '../../../src/features/customers/tenant-opt-outs.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { formsOfNumber } from '../../support/database-scan.ts';
import { storedEvents, takeIn } from '../../support/take-in.ts';
import {
  attemptAll,
  bodyOf,
  contactOf,
  type ErasureWorld,
  messageOf,
  NUMBER,
  type Person,
  person,
  statusOf,
  storeFile,
  WABA,
} from './erasure-world.ts';

export const ASHA = person('Asha', '5511987650143');

export const BO = person('Bo', '4915550009182');

export const GROUP = 'group-447711';

/** Everything by which Asha could be known. */
export function tracesOf(who: Person): string[] {
  return [...formsOfNumber(who.waId), who.userId, who.name, who.text];
}

export async function customerIdOf(database: Database, who: Person): Promise<string> {
  const [row] = await query<{ id: string }>(database, 'select id from contacts where wa_id = :waId', {
    waId: who.waId,
  });
  return row?.id ?? '0';
}

/** What upstream reports of the group. */
function groupBody(field: string, report: object): Buffer {
  return bodyOf([{ field, groups: [{ group_id: GROUP, timestamp: '1790000000', ...report }] }]);
}

/** Of a status of a message to the group: which member it is about. */
const ofGroup = ({ waId }: Person) => ({
  id: 'wamid.to-group',
  recipient_type: 'group',
  recipient_id: GROUP,
  recipient_user_id: undefined,
  recipient_participant_id: waId,
});

/** All kinds of rows that hold something of Asha, among Bo's. */
export async function fill(world: ErasureWorld): Promise<{ keys: string[]; body: Buffer }> {
  const { database } = world;
  const image = { type: 'image', image: { id: '77', mime_type: 'image/jpeg', caption: ASHA.text } };
  const order = {
    type: 'order',
    order: {
      catalog_id: 'catalog-1',
      text: ASHA.text,
      product_items: [{ product_retailer_id: 'r1', quantity: 1, item_price: 2, currency: 'USD' }],
    },
  };
  const body = bodyOf([
    { contacts: [contactOf(ASHA), contactOf(BO)], messages: [messageOf(ASHA, 1), messageOf(BO, 1)] },
    { contacts: [contactOf(ASHA)], messages: [messageOf(ASHA, 2, image), messageOf(ASHA, 3, order)] },
    { statuses: [statusOf(ASHA, 'out-1', 'sent'), statusOf(BO, 'out-1', 'sent')] },
  ]);
  await takeIn(
    database,
    body,
    // What becomes no event, beside a neighbour that does.
    bodyOf([
      {
        field: 'user_preferences',
        user_preferences: [
          { wa_id: ASHA.waId, category: 'marketing_messages', value: 'stop', detail: ASHA.text },
        ],
      },
      { contacts: [contactOf(BO)], messages: [messageOf(BO, 2)] },
      { contacts: [contactOf(ASHA)], messages: [{ ...messageOf(ASHA, 'no-id'), id: undefined }] },
    ]),
    bodyOf([
      {
        contacts: [contactOf(ASHA), contactOf(BO)],
        messages: [messageOf(ASHA, 'g1', { group_id: GROUP }), messageOf(BO, 'g1', { group_id: GROUP })],
      },
    ]),
    groupBody('group_lifecycle_update', { type: 'group_create', subject: 'A trip' }),
    groupBody('group_participants_update', {
      type: 'group_participants_add',
      added_participants: [ASHA, BO].map(({ waId, userId }) => ({ wa_id: waId, user_id: userId })),
    }),
    bodyOf([
      {
        statuses: [
          { ...statusOf(ASHA, 'out-g', 'read'), ...ofGroup(ASHA) },
          { ...statusOf(BO, 'out-g', 'read'), ...ofGroup(BO) },
        ],
      },
    ]),
    bodyOf([
      {
        statuses: [
          { ...statusOf(ASHA, 'pay', 'captured'), type: 'payment', payment: { reference_id: 'ref-asha-1' } },
          { ...statusOf(BO, 'pay', 'captured'), type: 'payment', payment: { reference_id: 'ref-bo-1' } },
        ],
      },
    ]),
  );
  for (const who of [ASHA, BO])
    await noteOptOut(
      { database, actor: SYSTEM },
      WABA,
      { phone: who.waId },
      {
        scope: 'all',
        source: 'api',
        reason: who.text,
      },
    );
  const keys = [await storeFile(world, ASHA.wamid(2), Buffer.from(`file of ${ASHA.name}`))];
  keys.push(...(await send(world, ASHA)));
  await send(world, BO);
  await attemptAll(database);
  return { keys, body };
}

/** A message of the tenant's to someone, with all that is kept beside it. */
async function send({ database, objectStore }: ErasureWorld, who: Person): Promise<string[]> {
  const key = `up${who.waId}`;
  await objectStore.put(key, [Buffer.from(`for ${who.name}`)] as never, { contentType: 'image/jpeg' });
  const uuid = `019aa2b3-7c4d-7e8f-9a0b-${who.waId.padStart(12, '0').slice(-12)}`;
  await execute(
    database,
    `insert into media_uploads (id, waba_id, state, object_key, file_name, size_bytes, expires_at)
     values (:uuid, :waba, 'ready', :key, :name, 5, now() + interval '1 day')`,
    { uuid, waba: WABA, key, name: `for ${who.name}.jpg` },
  );
  const [row] = await query<{ id: string }>(
    database,
    `insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, content)
     select :waba, :number, c.id, 'outbound', :who, 'text', :json from conversations c join contacts k on k.id = c.contact_id
      where k.wa_id = :waId returning id`,
    {
      waba: WABA,
      number: NUMBER,
      who: who.wamid('out-1'),
      json: JSON.stringify({ to: who.waId, text: who.text }),
      waId: who.waId,
    },
  );
  const messageId = row?.id ?? '';
  await execute(
    database,
    `insert into outbound_messages (message_id, waba_id, phone_number_id, recipient, state, upstream_id, media_ids)
     values (:messageId, :waba, :number, :waId, 'accepted', :who, array[cast(:uuid as uuid)])`,
    { messageId, waba: WABA, number: NUMBER, waId: who.waId, who: who.wamid('out-1'), uuid },
  );
  await execute(
    database,
    `insert into scheduled_messages (message_id, waba_id, phone_number_id, send_at, is_open)
     values (:messageId, :waba, :number, now(), false)`,
    { messageId, waba: WABA, number: NUMBER },
  );
  await execute(
    database,
    `with made as (
       insert into broadcasts (waba_id, phone_number_id, name, template, recipients, requested_by)
       values (:waba, :number, 'Sale', '{}', 1, 'a user') returning id
     )
     insert into broadcast_recipients (broadcast_id, waba_id, recipient, parameters)
     select id, :waba, :waId, :text from made`,
    { waba: WABA, number: NUMBER, waId: who.waId, text: JSON.stringify([who.name]) },
  );
  await execute(
    database,
    `insert into idempotency_keys (waba_id, operation, key, fingerprint, message_id, held_until, response_body)
     values (:waba, 'send', :waId, '\\x00', :messageId, now(), :json)`,
    {
      waba: WABA,
      waId: `key-${who.waId}`,
      messageId,
      json: JSON.stringify({ id: who.wamid('out-1'), to: who.waId }),
    },
  );
  await execute(database, 'insert into phone_aliases (waba_id, phone, wa_id) values (:waba, :waId, :waId2)', {
    waba: WABA,
    waId: `${who.waId}9`,
    waId2: who.waId,
  });
  await execute(
    database,
    'insert into send_pacing (phone_number_id, recipient, free_at) values (:number, :waId, now())',
    { number: NUMBER, waId: who.waId },
  );
  return [key];
}

/** What is stored of everyone else, without what changes by itself. */
export async function othersOf(database: Database): Promise<unknown> {
  const events = (await storedEvents(database)).filter(
    ({ body }) => body === null || !body.includes(ASHA.waId),
  );
  const rows = await query(
    database,
    `select m.upstream_id, m.content, c.id, k.profile_name from messages m
       join conversations c on c.id = m.conversation_id left join contacts k on k.id = c.contact_id
      where m.content not like '%${ASHA.waId}%' order by m.id`,
  );
  return { events: events.filter(({ type }) => type !== 'order'), rows };
}
