import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import {
  alertUuidOf,
  isRowId,
  mediaUuidOf,
  publicAlertId,
  publicMediaId,
  publicSetupId,
  setupRowOf,
} from '../../platform/public-ids.ts';

/** An object that an id names, other than an event or a delivery. */
export type FoundObject = {
  kind: string;
  id: string;
  wabaId: string | null;
  tenantId: string | null;
  /** Its type, state or name. */
  about: string | null;
  createdAt: Date;
  /** The path of the page of the portal that shows it; null: there is none. */
  page: string | null;
};

type Row = Omit<FoundObject, 'kind' | 'page'> & { kindIndex: number; parent: string | null };

type Kind = {
  kind: string;
  /** Reads id, WABA, tenant, about, creation time and the object whose page shows it. Without a WABA, operators find it only. */
  select: string;
  /** Readings of an id, each with the condition by which it is looked for; the first is that for the ids of workflows. */
  by: readonly (readonly [keyof ReturnType<typeof readingsOf>, string])[];
  shownId?: (uuid: string) => string;
  page?: (row: Row) => string;
  /** The first parts of the ids of its workflows. */
  workflows?: readonly string[];
};

const ROW = 'id = cast(:row as bigint)';

/** An object by the number of its row; `owners`: SQL of its WABA and its tenant. */
function ofRow(
  kind: string,
  table: string,
  { about = 'null', owners = 'waba_id, null', ...shown }: RowOptions,
): Kind {
  const select = `select id, ${owners}, ${about}, created_at, null from ${table}`;
  return { kind, select, by: [['row', ROW]], ...shown };
}

type RowOptions = Pick<Kind, 'page' | 'workflows'> & { about?: string; owners?: string };

/** Every kind of object whose id the API, a webhook, the portal, a command or the Temporal UI shows. */
const KINDS: readonly Kind[] = [
  {
    kind: 'message',
    select: "select id, waba_id, null, direction || ' ' || type, created_at, conversation_id from messages",
    by: [
      ['row', ROW],
      [
        'text',
        'phone_number_id = any (array(select phone_number_id from phone_numbers)) and upstream_id = :text',
      ],
    ],
    page: (row) => `${wabaPage(row)}/conversations/${row.parent}#m${row.id}`,
    workflows: ['media', 'send'],
  },
  ofRow('conversation', 'conversations', {
    page: (row) => `${wabaPage(row)}/conversations/${row.id}`,
    workflows: ['eraseConversation'],
  }),
  ofRow('customer', 'contacts', {
    page: (row) => `${wabaPage(row)}/conversations`,
    workflows: ['eraseCustomer'],
  }),
  {
    kind: 'order',
    select: `select o.id, o.waba_id, null, 'ORD-' || o.number, o.created_at, m.conversation_id
               from orders o left join messages m on m.id = o.message_id`,
    by: [
      ['row', 'o.id = cast(:row as bigint)'],
      [
        'orderNumber',
        'o.number = cast(:orderNumber as bigint) and o.id is distinct from cast(:row as bigint)',
      ],
    ],
    page: (row) => `${wabaPage(row)}/conversations/${row.parent}`,
    workflows: ['order'],
  },
  {
    kind: 'payment',
    select: 'select lane, waba_id, null, event_id, created_at, null from payment_reports',
    by: [['text', 'waba_id = any (array(select waba_id from wabas)) and lane = :text']],
  },
  ofRow('endpoint', 'webhook_endpoints', {
    about: '(select mode from endpoint_health where endpoint_id = id)',
    page: (row) => `${wabaPage(row)}/endpoints/${row.id}`,
    workflows: ['endpoint'],
  }),
  ofRow('replay', 'replays', {
    about: 'state',
    page: (row) => `${wabaPage(row)}/replays/${row.id}`,
    workflows: ['replay'],
  }),
  ofRow('broadcast', 'broadcasts', {
    about: 'state',
    page: (row) => `${wabaPage(row)}/broadcasts/${row.id}`,
    workflows: ['broadcast'],
  }),
  ofRow('erasure', 'erasures', {
    about: "kind || ', ' || state",
    owners: 'waba_id, tenant_id',
    page: (row) =>
      row.wabaId === null ? '/portal/operator/erasures' : `${wabaPage(row)}/erasures/${row.id}`,
  }),
  ofRow('API key', 'api_keys', { about: 'name', page: (row) => `${wabaPage(row)}/keys` }),
  ofRow('key request', 'api_key_requests', {
    about: 'state',
    owners: 'waba_id, tenant_id',
    page: (row) => `${wabaPage(row)}/keys`,
    workflows: ['api-key-request'],
  }),
  {
    kind: 'audit entry',
    select: "select id, waba_id, tenant_id, action || ' ' || target, at, null from audit_log",
    by: [
      ['row', ROW],
      ['request', 'request_id = :request'],
    ],
    page: (row) => (row.wabaId === null ? '/portal/operator/audit' : `${wabaPage(row)}/audit`),
  },
  {
    kind: 'upload',
    select: 'select id, waba_id, null, state, created_at, null from media_uploads',
    by: [['media', 'id = cast(:media as uuid)']],
    shownId: publicMediaId,
    page: (row) => `${wabaPage(row)}/data`,
  },
  {
    kind: 'alert',
    select: 'select id, waba_id, tenant_id, kind, opened_at, null from alerts',
    by: [['alert', 'id = cast(:alert as uuid)']],
    shownId: publicAlertId,
    page: () => '/portal/alerts?state=all',
  },
  {
    kind: 'webhook of an alert',
    select: 'select id, waba_id, null, alert, created_at, null from alert_notices',
    by: [['alert', 'id = cast(:alert as uuid)']],
    shownId: publicAlertId,
    page: (row) => `${wabaPage(row)}/endpoints/alerts`,
    workflows: ['endpoint-alert'],
  },
  {
    kind: 'WABA',
    select: 'select waba_id, waba_id, tenant_id, null, created_at, null from wabas',
    by: [['text', 'waba_id = :text']],
    page: wabaPage,
    workflows: ['waba-numbers', 'eraseWaba'],
  },
  {
    kind: 'phone number',
    select: 'select phone_number_id, waba_id, null, verified_name, created_at, null from phone_numbers',
    by: [['text', 'phone_number_id = :text']],
    page: wabaPage,
    workflows: ['scheduled'],
  },
  ofRow('tenant', 'tenants', {
    about: 'business_name',
    owners: 'null, id',
    page: (row) => `/portal/operator/tenants/${row.id}`,
    workflows: ['eraseTenant'],
  }),
  {
    kind: 'set-up link',
    // Only operators see links.
    select: 'select id, null, tenant_id, state, created_at, null from setup_links',
    by: [['setupLink', 'id = cast(:setupLink as bigint)']],
    shownId: publicSetupId,
    page: (row) => `/portal/operator/setup-links?id=${publicSetupId(row.id)}`,
    workflows: ['setUp'],
  },
  ofRow('user', 'users', {
    about: 'name',
    owners: 'null, null',
    page: () => '/portal/operator/users',
    workflows: ['eraseUser'],
  }),
  ofRow('invitation', 'invitations', {
    about: 'role',
    owners: 'null, tenant_id',
    page: () => '/portal/operator/users',
  }),
  {
    kind: 'mail',
    select: 'select id, null, null, kind, created_at, null from mails',
    by: [['uuid', 'id = cast(:uuid as uuid)']],
    workflows: ['mail'],
  },
  {
    kind: 'worker process',
    select: 'select id, null, null, null, seen_at, null from worker_processes',
    by: [['text', 'id = :text']],
    page: () => '/portal/operator/health',
    workflows: ['delivery-session'],
  },
];

const MAX_FOUND = 100;

/**
 * What an id names, other than events and deliveries, of one WABA or (null) everywhere. Ids of rows are numbers, so one
 * number may name several objects. Takes the id of a workflow as well, such as `send/7`.
 */
export async function findObjects(
  database: Database,
  wabaId: string | null,
  text: string,
): Promise<FoundObject[]> {
  const [, prefix = null, id = text] = WORKFLOW_ID.exec(text) ?? [];
  const readings = readingsOf(id);
  const looks = KINDS.flatMap(({ select, by, workflows = [] }, kindIndex) => {
    const asked = prefix === null ? by : workflows.includes(prefix) ? by.slice(0, 1) : [];
    const conditions = asked.filter(([reading]) => readings[reading] !== null);
    // The owner is looked at before the limit: others may use the same id.
    return conditions.map(
      ([, condition]) =>
        `(select ${kindIndex} as "kindIndex", cast(id as text) as id, cast(waba as text) as "wabaId",
                 cast(tenant as text) as "tenantId", cast(about as text) as about, at as "createdAt",
                 cast(parent as text) as parent
             from (${select} where ${condition}) as found (id, waba, tenant, about, at, parent)
            where ${wabaId === null ? 'true' : 'cast(waba as text) = :wabaId'} limit ${MAX_FOUND})`,
    );
  });
  if (looks.length === 0) return [];
  const rows = await query<Row>(database, looks.join('\nunion all\n'), { ...readings, wabaId });
  return rows.slice(0, MAX_FOUND).map(describe);
}

function readingsOf(id: string) {
  const uuid = UUID.test(id) ? id : null;
  return {
    row: isRowId(id) ? id : null,
    media: mediaUuidOf(id) ?? uuid,
    alert: alertUuidOf(id) ?? uuid,
    request: id.startsWith('req_') ? id : null,
    uuid,
    setupLink: setupRowOf(id),
    orderNumber: ORDER_NUMBER.exec(id)?.[1] ?? null,
    text: id,
  };
}

/** `service.order_number`, or `service.order_id`. */
const ORDER_NUMBER = /^(?:ORD-)?([1-9]\d{0,17})$/;
/** The id of a workflow, for that of a delivery loop also with its run, as its deliveries name it, and for scheduled messages with their time. */
const WORKFLOW_ID = /^([A-Za-z-]+)\/([^/]+)(?:\/(?:[0-9a-f-]{36}|[\dT:.-]{20,30}Z))?$/;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function describe(row: Row): FoundObject {
  const { kindIndex, parent: _, ...found } = row;
  const { kind = '', shownId, page } = KINDS[kindIndex] ?? {};
  return { kind, ...found, id: shownId?.(row.id) ?? row.id, page: page?.(row) ?? null };
}

function wabaPage({ wabaId }: Row): string {
  return `/portal/w/${encodeURIComponent(wabaId ?? '')}`;
}
