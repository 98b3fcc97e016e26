import { knownTenant, knownWaba } from '../../features/accounts/accounts.ts';
import { wabaHolder } from '../../features/accounts/number-owners.ts';
import type { Authority } from '../../features/users/user-authority.ts';
import { checkRemovable } from '../../features/users/users.ts';
import { type Actor, type Audited, recordBy } from '../../platform/audit/audit.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import { checkRowId, checkUpstreamId, RequestError } from '../../platform/request-input.ts';
import { insertWorkflowTasks } from '../../platform/temporal/workflow-tasks.ts';
import type { SignedReport } from './erasure-report.ts';
import { type ErasureSubject, NOTHING, sealSubject } from './erasure-step.ts';
import {
  ERASE_TASKS,
  type Erasure,
  erasureWorkflowId,
  findErasure,
  findOpenErasure,
  insertErasure,
  listErasures,
} from './erasure-store.ts';

export type ErasureTools = SealedDatabase;

type Asking = ErasureTools & Audited;

export type ErasureView = Omit<Erasure, Inner> & {
  erasureId: string;
  waitsFor: string | null;
  report: SignedReport | null;
};

type Inner = 'id' | 'position' | 'after' | 'subjectSealed' | 'note' | 'report' | 'signature';

const MAX_LISTED = 100;

/** Our id, a phone number (digits), or a business-scoped user id. */
export type CustomerName = { customerId: string } | { phone: string } | { userId: string };

/**
 * One that is being erased is not erased twice: its erasure is returned. Throws RequestError: `invalid_value`, `unknown_waba`,
 * `unknown_customer`.
 */
export async function eraseCustomer(
  tools: Asking,
  wabaId: string,
  named: CustomerName,
): Promise<ErasureView> {
  const { tenantId } = await knownWaba(tools.database, wabaId);
  const { id, ids } = await knownCustomer(tools.database, wabaId, named);
  const owner = { wabaId, tenantId };
  return await request(tools, { kind: 'customer', subjectId: id, ...owner }, { contactIds: [id], ids });
}

/** Its customer goes too if they have no other. Throws RequestError: `invalid_value`, `unknown_waba`, `unknown_conversation`. */
export async function eraseConversation(
  tools: Asking,
  wabaId: string,
  conversationId: string,
): Promise<ErasureView> {
  const { database } = tools;
  const { tenantId } = await knownWaba(database, wabaId);
  const [row] = await query<{ id: string }>(
    database,
    `select coalesce(merged_into, id) as id from conversations where waba_id = :wabaId and id = :conversationId`,
    { wabaId, conversationId: checkRowId('The id of the conversation', conversationId) },
  );
  if (row === undefined) {
    const message = `WABA ${wabaId} has no conversation ${conversationId}.`;
    throw new RequestError('unknown_conversation', message, 'conversationId');
  }
  const subject = { kind: 'conversation' as const, subjectId: row.id, wabaId, tenantId };
  return await request(tools, subject, { conversationIds: [row.id] });
}

/** Also one that was removed. Throws RequestError: `invalid_value`, `unknown_waba`. */
export async function eraseWaba(tools: Asking, wabaId: string): Promise<ErasureView> {
  const holder = await wabaHolder(tools.database, checkUpstreamId('The WABA id', wabaId));
  if (holder === null) throw new RequestError('unknown_waba', `There is no WABA ${wabaId}.`);
  const { tenantId } = holder;
  return await request(tools, { kind: 'waba', subjectId: wabaId, wabaId, tenantId }, { wabaIds: [wabaId] });
}

/** Also one that was removed. Throws RequestError: `invalid_value`, `unknown_tenant`. */
export async function eraseTenant(tools: Asking, tenantId: string): Promise<ErasureView> {
  const { database } = tools;
  const rows = await query<{ wabaId: string | null }>(
    database,
    `select w.waba_id as "wabaId" from tenants t left join wabas w on w.tenant_id = t.id where t.id = :tenantId`,
    { tenantId: checkRowId('The id of the tenant', tenantId) },
  );
  if (rows.length === 0) await knownTenant(database, tenantId);
  const wabaIds = rows.flatMap(({ wabaId }) => wabaId ?? []);
  return await request(tools, { kind: 'tenant', subjectId: tenantId, wabaId: null, tenantId }, { wabaIds });
}

/**
 * Their name goes where it stands beside what they did, except in the audit log. Throws RequestError: `unknown_user`, `own_account`,
 * `last_operator`.
 */
export async function eraseUser(
  tools: ErasureTools,
  authority: Authority,
  userId: string,
): Promise<ErasureView> {
  await checkRemovable(tools, authority, userId);
  const subject = { kind: 'user' as const, subjectId: userId, wabaId: null, tenantId: null };
  return await request({ ...tools, actor: authority.actor }, subject, {});
}

async function request(
  { database, secretBox, actor }: Asking,
  subject: Pick<Erasure, 'kind' | 'subjectId' | 'wabaId' | 'tenantId'>,
  found: Partial<ErasureSubject>,
): Promise<ErasureView> {
  return await database.transaction(async (trx) => {
    const erasure = await insertErasure(trx, { ...subject, requestedBy: namelessOf(actor) });
    if (erasure === null) {
      const open = await findOpenErasure(trx, subject);
      if (open === null) throw new RequestError('erasure_ended', 'The erasure has just ended; try again.');
      return viewOf(open);
    }
    await sealSubject(trx, secretBox, erasure.id, { ...NOTHING, ...found });
    await insertTask(trx, erasure);
    const { kind, subjectId, wabaId, tenantId } = erasure;
    const change = { tenantId, wabaId, action: 'erasure.requested', target: `${kind} ${subjectId}` };
    await recordBy(trx, actor, { ...change, detail: { erasureId: erasure.id } });
    return viewOf(erasure);
  });
}

async function insertTask(trx: Transaction, erasure: Erasure): Promise<void> {
  const workflowId = erasureWorkflowId(erasure);
  const { kind, wabaId, id: erasureId } = erasure;
  const about = { wabaId: wabaId ?? '', eventId: workflowId, argument: { erasureId } };
  await insertWorkflowTasks(trx, [{ workflowId, kind: ERASE_TASKS[kind], ...about }]);
}

/** A report outlives its user, whose name must not be in it. */
function namelessOf({ name, userId }: Actor): string {
  return userId === undefined ? name : `user ${userId}`;
}

/** Throws RequestError: `invalid_value`, `unknown_customer`. */
export async function knownCustomer(
  database: Database,
  wabaId: string,
  named: CustomerName,
): Promise<{ id: string; ids: string[] }> {
  const [condition, value] = conditionOf(named);
  const rows = await query<{ id: string; waId: string | null; userId: string | null }>(
    database,
    `select id, wa_id as "waId", user_id as "userId" from contacts where waba_id = :wabaId and (${condition})
      order by wa_id = :value desc limit 1`,
    { wabaId, value },
  );
  const [contact] = rows;
  if (contact === undefined) {
    // Not by whom they asked for: messages end in logs.
    throw new RequestError('unknown_customer', `WABA ${wabaId} has no such customer.`, 'customer');
  }
  const ids = [contact.waId, contact.userId].filter((id) => id !== null && id !== '') as string[];
  return { id: contact.id, ids };
}

/** Upstream may know a phone under other digits; its responses showed which. */
function conditionOf(named: CustomerName): [string, string] {
  if ('customerId' in named)
    return ['id = cast(:value as bigint)', checkRowId('The id of the customer', named.customerId)];
  if ('userId' in named) return [`user_id = :value and :value <> ''`, named.userId];
  const alias = 'select wa_id from phone_aliases where waba_id = :wabaId and phone = :value';
  return [`wa_id = :value or wa_id in (${alias})`, named.phone];
}

/** Any for operators (`wabaId` null). Throws RequestError: `invalid_value`, `unknown_erasure`. */
export async function erasureOf(
  { database }: Pick<ErasureTools, 'database'>,
  wabaId: string | null,
  erasureId: string,
): Promise<ErasureView> {
  const erasure = await findErasure(database, wabaId, checkRowId('The id of the erasure', erasureId));
  if (erasure === null) throw new RequestError('unknown_erasure', `There is no erasure ${erasureId}.`);
  return viewOf(erasure);
}

export async function erasuresOf(
  { database }: Pick<ErasureTools, 'database'>,
  wabaId: string | null,
  { beforeId = null as string | null, limit = MAX_LISTED } = {},
): Promise<ErasureView[]> {
  return (await listErasures(database, wabaId, { beforeId, limit })).map(viewOf);
}

function viewOf({ id: erasureId, position, after, subjectSealed, ...erasure }: Erasure): ErasureView {
  const { note: waitsFor, counts, refused, report, signature, ...shown } = erasure;
  const signed = report === null || signature === null ? null : { report: JSON.parse(report), signature };
  return { erasureId, ...shown, waitsFor, counts, refused, report: signed };
}
