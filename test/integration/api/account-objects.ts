import { noteTemplates, type TemplateReport } from '../../../src/features/accounts/templates.ts';
import { insertMedia } from '../../../src/features/messages/media/media.ts';
import { insertPaymentReports } from '../../../src/features/messages/payments.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { dayOfUuidV7, uuidV7 } from '../../../src/platform/public-ids.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { publishOne } from '../deliveries/event-fixtures.ts';
import { addConversation, addMessage } from './api-harness.ts';

type Numbers = { wabaId: string; phoneNumberId: string };

/** Two of everything that a WABA can have, so that lists have a second page. */
const OF_EACH = 2;

/** Lets ids of different kinds never be equal by chance: an id of one kind is then unknown to all others. */
export async function spreadIds(database: Database): Promise<void> {
  const rows = await query<{ name: string }>(
    database,
    `select sequencename as name from pg_sequences where schemaname = 'public' order by 1`,
  );
  for (const [index, { name }] of rows.entries()) {
    await execute(database, 'select setval(cast(:name as regclass), :index)', {
      name,
      index: (index + 1) * 100_000,
    });
  }
}

/** Gives a WABA objects of every kind that the API shows; failed deliveries can be replayed. */
export async function addAccountObjects(database: Database, account: Numbers): Promise<void> {
  for (let index = 0; index < OF_EACH; index += 1) {
    await addEndpoint(database, account.wabaId, `https://shop-${index}.example/hook`);
  }
  for (let index = 0; index < OF_EACH; index += 1) {
    await addConversationObjects(database, account);
    await publishOne(database, `event-of-${account.wabaId}-${index}`, {
      ...account,
      at: new Date(Date.now() - 60_000),
    });
    await addReplay(database, account);
    await addBroadcast(database, account);
    await addErasure(database, account.wabaId);
    await addAlert(database, account);
    await addSetupLink(database, account);
  }
  await noteTemplates(
    database,
    ['a', 'b'].map((name) => templateReport(account.wabaId, name)),
  );
  await addUpload(database, account);
  await addPayment(database, account, `payment-of-${account.wabaId}`);
  const failed = `update deliveries set state = 'failed', finished_at = now() where waba_id = :wabaId`;
  await execute(database, failed, { wabaId: account.wabaId });
  await execute(
    database,
    'delete from delivery_queue where delivery_id in (select id from deliveries where waba_id = :wabaId)',
    { wabaId: account.wabaId },
  );
}

function templateReport(wabaId: string, name: string): TemplateReport {
  const nothing = { quality: null, rejectedReason: null, content: null, isChanged: false };
  const said = { language: 'en_US', status: 'APPROVED', category: 'UTILITY', at: new Date() };
  return { wabaId, templateId: `${wabaId}${name}`, name, ...said, ...nothing };
}

async function addConversationObjects(database: Database, account: Numbers): Promise<void> {
  const { wabaId } = account;
  const conversation = await addConversation(database, account);
  await addMessage(database, conversation, account);
  await addMessage(database, conversation, { ...account, direction: 'outbound' });
  const messageId = await addMessage(database, conversation, { ...account, type: 'image' });
  const file = {
    mediaType: 'image',
    upstreamMediaId: `media-of-${messageId}`,
    mimeType: 'image/jpeg',
    upstreamError: null,
    sha256: null,
    url: null,
    caption: null,
    fileName: null,
  };
  await database.transaction((trx) => insertMedia(trx, [{ wabaId, messageId, ...file }]));
  await addScheduled(database, conversation, account);
}

async function addScheduled(database: Database, conversation: string, account: Numbers): Promise<void> {
  const messageId = await addMessage(database, conversation, { ...account, direction: 'outbound' });
  await execute(
    database,
    `with sent as (
       insert into outbound_messages (message_id, waba_id, phone_number_id, recipient)
       values (:messageId, :wabaId, :phoneNumberId, '12025550143') returning message_id, waba_id, phone_number_id
     )
     insert into scheduled_messages (message_id, waba_id, phone_number_id, send_at)
     select message_id, waba_id, phone_number_id, now() + interval '1 day' from sent`,
    { messageId, ...account },
  );
}

async function addUpload(database: Database, { wabaId }: Numbers): Promise<void> {
  const uuid = uuidV7(Date.now());
  await execute(
    database,
    `insert into media_uploads (id, waba_id, state, object_key, media_type, mime_type, size_bytes, sha256, expires_at)
     values (:uuid, :wabaId, 'ready', :uuid2, 'image', 'image/png', 1, '00', now() + interval '1 day')`,
    { uuid, wabaId, uuid2: `uploads/${uuid}` },
  );
}

/** A payment is shown by its reference id; the columns with the event's id let the matrix find it. */
async function addPayment(
  database: Database,
  { wabaId, phoneNumberId }: Numbers,
  reference: string,
): Promise<void> {
  const uuid = uuidV7(Date.now() - 60_000);
  const data = { reference_id: reference, status: 'captured', timestamp: '1790000000' };
  await execute(
    database,
    `insert into events (day, id, waba_id, tenant_id, phone_number_id, event_type, event_id, lane, sequence, body,
                         occurred_at)
     select cast(:day as date), cast(:uuid as uuid), waba_id, tenant_id, :phoneNumberId, 'payment', :reference, :reference, 1, :json, now() from wabas
      where waba_id = :wabaId`,
    {
      day: dayOfUuidV7(uuid),
      uuid,
      phoneNumberId,
      reference,
      json: Buffer.from(JSON.stringify({ eventType: 'payment', eventId: reference, data })),
      wabaId,
    },
  );
  const report = { eventUuid: uuid, wabaId, phoneNumberId, lane: reference, eventId: reference };
  await database.transaction((trx) => insertPaymentReports(trx, [{ ...report, data: JSON.stringify(data) }]));
}

async function addReplay(database: Database, { wabaId }: Numbers): Promise<void> {
  await execute(
    database,
    `insert into replays (waba_id, selection, state, total, cursor, requested_by)
     values (:wabaId, :value, 'done', 0, '{"toId":"","endpoints":[],"skipped":0}', 'test')`,
    {
      wabaId,
      value:
        '{"deliveryIds":null,"endpointId":null,"from":null,"to":"2026-01-01T00:00:00Z","eventTypes":null,"states":null}',
    },
  );
}

/** A draft with recipients. */
async function addBroadcast(database: Database, account: Numbers): Promise<void> {
  await execute(
    database,
    `with made as (
       insert into broadcasts (waba_id, phone_number_id, name, template, recipients, requested_by)
       values (:wabaId, :phoneNumberId, 'Sale', '{"name":"a","language":{"code":"en_US"}}', 3, 'test') returning id
     )
     insert into broadcast_recipients (broadcast_id, waba_id, recipient)
     select id, :wabaId, '1202555010' || n from made cross join generate_series(1, 3) as n`,
    account,
  );
}

/** One that is done, with a report. */
export async function addErasure(database: Database, wabaId: string): Promise<void> {
  const signature = { algorithm: 'ed25519', keyId: 'k1', publicKey: 'AA==', value: 'AA==' };
  await execute(
    database,
    `insert into erasures (kind, subject_id, waba_id, tenant_id, state, requested_by, finished_at, counts, report, signature)
     select 'customer', '900111222', waba_id, tenant_id, 'done', 'API key 1', now(), '{"messages":2}', '{"version":1}', :signature
       from wabas where waba_id = :wabaId`,
    { signature: JSON.stringify(signature), wabaId },
  );
}

async function addAlert(database: Database, { wabaId }: Numbers): Promise<void> {
  await execute(
    database,
    `insert into alert_notices (id, waba_id, endpoint_id, alert, body)
     select gen_random_uuid(), waba_id, id, 'failing', cast('{"alertId":"alr_1"}' as bytea)
       from webhook_endpoints where waba_id = :wabaId order by id limit 1`,
    { wabaId },
  );
}

async function addSetupLink(database: Database, { wabaId, phoneNumberId }: Numbers): Promise<void> {
  await execute(
    database,
    `insert into setup_links (token_hash, tenant_id, mode, connections, success_url, failure_url, state, authorized_at, waba_id, phone_number_id, expires_at)
     select sha256(gen_random_uuid()::text::bytea), tenant_id, 'signup', '{cloud}', 'https://crm.example/', 'https://crm.example/', 'registered', now(),
            waba_id, :phoneNumberId, now() + interval '7 days'
       from wabas where waba_id = :wabaId`,
    { wabaId, phoneNumberId },
  );
}
