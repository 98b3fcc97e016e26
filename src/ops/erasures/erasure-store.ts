import type { ErasureCounts } from '../../platform/erasing.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query, queryOne } from '../../platform/postgres/sql.ts';
import type { TaskKind } from '../../platform/temporal/workflow-tasks.ts';
import type { ReportSignature } from './erasure-report.ts';

export type ErasureKind = 'customer' | 'conversation' | 'waba' | 'tenant' | 'user';

type ErasureState = 'requested' | 'running' | 'done';

export type Erasure = {
  id: string;
  kind: ErasureKind;
  /** Our id of the subject; of a WABA, upstream's. */
  subjectId: string;
  wabaId: string | null;
  tenantId: string | null;
  state: ErasureState;
  requestedBy: string;
  createdAt: Date;
  /** What came later is not erased; null: not yet begun. */
  startedAt: Date | null;
  finishedAt: Date | null;
  position: number;
  after: string | null;
  subjectSealed: string | null;
  note: string | null;
  counts: ErasureCounts;
  refused: ErasureCounts;
  report: string | null;
  signature: ReportSignature | null;
};

const ERASURE = `id, kind, subject_id as "subjectId", waba_id as "wabaId", tenant_id as "tenantId", state,
  requested_by as "requestedBy", created_at as "createdAt", started_at as "startedAt", finished_at as "finishedAt",
  position, after, subject_sealed as "subjectSealed", note, counts, refused, report, signature`;

export function erasureWorkflowId({ kind, subjectId }: Pick<Erasure, 'kind' | 'subjectId'>): string {
  return `${ERASE_TASKS[kind].workflowType}/${subjectId}`;
}

/** One type of workflow per kind, so that the Temporal UI tells them apart. */
export const ERASE_TASKS: Readonly<Record<ErasureKind, TaskKind>> = {
  customer: { workflowType: 'eraseCustomer', summary: 'erase a customer' },
  conversation: { workflowType: 'eraseConversation', summary: 'erase a conversation' },
  waba: { workflowType: 'eraseWaba', summary: 'erase a WABA' },
  tenant: { workflowType: 'eraseTenant', summary: 'erase a tenant' },
  user: { workflowType: 'eraseUser', summary: 'erase a user' },
};

/** Null: an erasure of the same subject is open. */
export async function insertErasure(
  trx: Transaction,
  erasure: Pick<Erasure, 'kind' | 'subjectId' | 'wabaId' | 'tenantId' | 'requestedBy'>,
): Promise<Erasure | null> {
  return await queryOne<Erasure>(
    trx,
    `insert into erasures (kind, subject_id, waba_id, tenant_id, requested_by)
     values (:kind, :subjectId, :wabaId, :tenantId, :requestedBy)
     on conflict (kind, subject_id) where state <> 'done' do nothing returning ${ERASURE}`,
    erasure,
  );
}

export async function findOpenErasure(
  database: Database,
  { kind, subjectId }: Pick<Erasure, 'kind' | 'subjectId'>,
): Promise<Erasure | null> {
  return await queryOne<Erasure>(
    database,
    `select ${ERASURE} from erasures where kind = :kind and subject_id = :subjectId and state <> 'done'`,
    { kind, subjectId },
  );
}

export async function saveSubject(trx: Transaction, erasureId: string, sealed: string): Promise<void> {
  await execute(trx, 'update erasures set subject_sealed = :sealed where id = :erasureId', {
    sealed,
    erasureId,
  });
}

/** SQL: asked for by the tenant who has the WABA now; an earlier one may have had it. */
const OF_WABA = `waba_id = :wabaId and kind in ('customer', 'conversation')
  and tenant_id = (select w.tenant_id from wabas w where w.waba_id = :wabaId)`;

/** Of a WABA unless `wabaId` is null, which is for operators. */
export async function findErasure(
  database: Database,
  wabaId: string | null,
  erasureId: string,
): Promise<Erasure | null> {
  return await queryOne<Erasure>(
    database,
    `select ${ERASURE} from erasures
      where id = :erasureId and (cast(:wabaId as text) is null or (${OF_WABA}))`,
    { wabaId, erasureId },
  );
}

/** All for `wabaId` null; those before `beforeId`, or the newest. */
export async function listErasures(
  database: Database,
  wabaId: string | null,
  { beforeId, limit }: { beforeId: string | null; limit: number },
): Promise<Erasure[]> {
  const own = wabaId === null ? '' : `${OF_WABA} and`;
  return await query<Erasure>(
    database,
    `select ${ERASURE} from erasures
      where ${own} id < coalesce(cast(:beforeId as bigint), 9223372036854775807) order by id desc limit :limit`,
    { wabaId: wabaId ?? '', beforeId, limit },
  );
}

/** Its batches follow each other. */
export async function lockErasure(trx: Transaction, erasureId: string): Promise<Erasure | null> {
  return await queryOne<Erasure>(trx, `select ${ERASURE} from erasures where id = :erasureId for update`, {
    erasureId,
  });
}

/** In the transaction that erased the batch: a repetition goes on behind it. */
export async function saveErasureProgress(
  trx: Transaction,
  erasureId: string,
  progress: Pick<Erasure, 'position' | 'after' | 'counts' | 'refused'>,
): Promise<void> {
  await execute(
    trx,
    `update erasures set state = 'running', started_at = coalesce(started_at, clock_timestamp()), position = :position,
            after = :after, counts = cast(:counts as jsonb), refused = cast(:refused as jsonb), note = null
      where id = :erasureId`,
    {
      ...progress,
      erasureId,
      counts: JSON.stringify(progress.counts),
      refused: JSON.stringify(progress.refused),
    },
  );
}

export async function noteErasure(database: Database, erasureId: string, note: string): Promise<void> {
  await execute(database, `update erasures set note = :note where id = :erasureId and state <> 'done'`, {
    note,
    erasureId,
  });
}

/** What it looked for is forgotten. */
export async function finishErasure(
  trx: Transaction,
  erasureId: string,
  { report, signature, finishedAt }: { report: string; signature: ReportSignature; finishedAt: Date },
): Promise<void> {
  await execute(
    trx,
    `update erasures set state = 'done', finished_at = :finishedAt, report = :report,
            signature = cast(:signature as jsonb), subject_sealed = null, note = null, after = null
      where id = :erasureId`,
    { erasureId, report, finishedAt, signature: JSON.stringify(signature) },
  );
}
