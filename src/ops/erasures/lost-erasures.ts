import type { Audited } from '../../platform/audit/audit.ts';
import { query } from '../../platform/postgres/sql.ts';
import { RequestError } from '../../platform/request-input.ts';
import { ERASE_TASKS, type ErasureKind } from './erasure-store.ts';
import {
  type ErasureTools,
  eraseConversation,
  eraseCustomer,
  eraseTenant,
  eraseUser,
  eraseWaba,
} from './erasures.ts';

const KINDS: readonly ErasureKind[] = ['customer', 'conversation', 'waba', 'tenant', 'user'];

export const ERASURE_WORKFLOW_TYPES: readonly string[] = Object.values(ERASE_TASKS).map(
  ({ workflowType }) => workflowType,
);

const SUBJECTS: Record<ErasureKind, { table: string; id: string; wabaId: string }> = {
  customer: { table: 'contacts', id: 'id', wabaId: 'waba_id' },
  conversation: { table: 'conversations', id: 'id', wabaId: 'waba_id' },
  waba: { table: 'wabas', id: 'waba_id', wabaId: 'waba_id' },
  tenant: { table: 'tenants', id: 'id', wabaId: `''` },
  user: { table: 'users', id: 'id', wabaId: `''` },
};

/** A restored database has it again, and knows nothing of its erasure. */
export type LostErasure = { kind: ErasureKind; subjectId: string; wabaId: string };

/** `workflowId` is such as `eraseCustomer/12`; null: the erasure is known, or nothing came back. */
export async function findLostErasure(
  { database }: Pick<ErasureTools, 'database'>,
  workflowId: string,
  startedAt: Date,
): Promise<LostErasure | null> {
  const [type = '', subjectId = ''] = workflowId.split('/');
  const kind = KINDS.find((each) => ERASE_TASKS[each].workflowType === type);
  if (kind === undefined) return null;
  const { table, id, wabaId } = SUBJECTS[kind];
  // A subject that was created later has the id by chance.
  const rows = await query<{ wabaId: string }>(
    database,
    `select ${wabaId} as "wabaId" from ${table} s
      where cast(s.${id} as text) = :subjectId and s.created_at < :startedAt
        and not exists (select from erasures e where e.kind = :kind and e.subject_id = :subjectId
              and (e.state <> 'done' or e.finished_at >= :startedAt))`,
    { kind, subjectId, startedAt },
  );
  return rows[0] === undefined ? null : { kind, subjectId, wabaId: rows[0].wabaId };
}

/** False: it cannot be erased as it is now, as the last operator. */
export async function eraseAgain(
  tools: ErasureTools & Audited,
  { kind, subjectId, wabaId }: LostErasure,
): Promise<boolean> {
  const authority = { actor: tools.actor, tenantId: null, userId: null };
  const erase = {
    customer: () => eraseCustomer(tools, wabaId, { customerId: subjectId }),
    conversation: () => eraseConversation(tools, wabaId, subjectId),
    waba: () => eraseWaba(tools, subjectId),
    tenant: () => eraseTenant(tools, subjectId),
    user: () => eraseUser(tools, authority, subjectId),
  };
  try {
    await erase[kind]();
    return true;
  } catch (error) {
    if (error instanceof RequestError) return false;
    throw error;
  }
}
