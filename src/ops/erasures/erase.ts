import { recordAudit } from '../../platform/audit/audit.ts';
import type { EncryptionKey } from '../../platform/crypto/secret-box.ts';
import { NotYetErased, sumOf } from '../../platform/erasing.ts';
import { finishTask } from '../../platform/temporal/workflow-tasks.ts';
import { type ErasureReport, reportText, signReport } from './erasure-report.ts';
import {
  type ErasureStep,
  type ErasureSubject,
  openSubject,
  type StepContext,
  type StepTools,
} from './erasure-step.ts';
import {
  type Erasure,
  erasureWorkflowId,
  findErasure,
  finishErasure,
  lockErasure,
  noteErasure,
  saveErasureProgress,
} from './erasure-store.ts';
import { tenantStep, userStep } from './steps/account-steps.ts';
import { CUSTOMER_STEPS } from './steps/customer-steps.ts';
import { WABA_STEPS } from './steps/waba-steps.ts';

export type EraseTools = StepTools & { encryptionKeys: readonly EncryptionKey[] };

/** Nothing personal. */
export type ErasureProgress = { state: Erasure['state']; step: string; erased: number };

/** `waitMs`: the time to wait, because of `reason`, before the next batch. */
export type ErasedBatch = ErasureProgress & { waitMs: number; reason: string };

type PlannedStep = { step: ErasureStep; wabaId: string };

function stepsOf({ kind, wabaId, subjectId }: Erasure, subject: ErasureSubject): PlannedStep[] {
  const own = wabaId ?? '';
  const withWaba = (steps: readonly ErasureStep[], id: string) => steps.map((step) => ({ step, wabaId: id }));
  switch (kind) {
    case 'customer':
    case 'conversation':
      return withWaba(CUSTOMER_STEPS, own);
    case 'waba':
      return withWaba(WABA_STEPS, subjectId);
    case 'tenant':
      return [...subject.wabaIds.flatMap((id) => withWaba(WABA_STEPS, id)), ...withWaba([tenantStep], '')];
    case 'user':
      return withWaba([userStep], '');
  }
}

/** The last batch ends the erasure with its report. Null: there is no such erasure. */
export async function eraseNextBatch(tools: EraseTools, erasureId: string): Promise<ErasedBatch | null> {
  const erasure = await findErasure(tools.database, null, erasureId);
  if (erasure === null) return null;
  const subject = openSubject(tools.secretBox, erasure);
  const steps = stepsOf(erasure, subject);
  const planned = steps[erasure.position];
  if (erasure.state === 'done') return { ...progressOf(erasure, 'done'), waitMs: 0, reason: '' };
  if (planned === undefined) return await finish(tools, erasure);
  const { step, wabaId } = planned;
  const place = wabaId === '' || erasure.kind !== 'tenant' ? step.name : `${step.name} of WABA ${wabaId}`;
  const name = `step ${erasure.position + 1} of ${steps.length}: ${place}`;
  try {
    const after = await runBatch({ ...tools, erasure, subject, wabaId }, step);
    return { ...progressOf(after, name), waitMs: 0, reason: '' };
  } catch (error) {
    if (!(error instanceof NotYetErased)) throw error;
    await noteErasure(tools.database, erasureId, error.message);
    return { ...progressOf(erasure, name), waitMs: error.waitMs, reason: error.message };
  }
}

async function runBatch(given: StepContext, step: ErasureStep): Promise<Erasure> {
  const { database, erasure } = given;
  let fileVersions = 0;
  const remove: StepContext['objectStore']['remove'] = async (key) => {
    const kept = await given.objectStore.remove(key);
    fileVersions += kept;
    return kept;
  };
  const context = { ...given, objectStore: { remove } };
  await step.prepare?.(context, erasure.after);
  const removed = (await step.removeFiles?.(context)) ?? [];
  return await database.transaction(async (trx) => {
    const locked = await lockErasure(trx, erasure.id);
    // A run that was taken for lost went on, and was first.
    const isStale = locked?.position !== erasure.position || locked.after !== erasure.after;
    if (locked === null || isStale || locked.state === 'done') return locked ?? erasure;
    const { after, counts } = await step.erase(trx, context, erasure.after, removed);
    const position = after === null ? locked.position + 1 : locked.position;
    const refused = sumOf(locked.refused, { fileVersions });
    const progress = { position, after, counts: sumOf(locked.counts, counts), refused };
    await saveErasureProgress(trx, erasure.id, progress);
    return { ...locked, ...progress, state: 'running' };
  });
}

async function finish(tools: EraseTools, erasure: Erasure): Promise<ErasedBatch> {
  const finishedAt = new Date();
  const text = reportText(reportOf(erasure, finishedAt));
  const signature = signReport(text, tools.encryptionKeys);
  await tools.database.transaction(async (trx) => {
    const locked = await lockErasure(trx, erasure.id);
    if (locked === null || locked.state === 'done') return;
    await finishErasure(trx, erasure.id, { report: text, signature, finishedAt });
    await finishTask(trx, erasureWorkflowId(erasure));
    const { kind, subjectId, wabaId, tenantId } = erasure;
    await recordAudit(trx, {
      tenantId,
      wabaId,
      actor: 'system',
      action: 'erasure.done',
      target: `${kind} ${subjectId}`,
      detail: { erasureId: erasure.id, ...erasure.counts, ...refusedOf(erasure) },
      requestId: null,
      ip: null,
    });
  });
  return { ...progressOf(erasure, 'done'), state: 'done', waitMs: 0, reason: '' };
}

function refusedOf({ refused: { fileVersions } }: Erasure): { fileVersionsRefused?: number } {
  return fileVersions === undefined ? {} : { fileVersionsRefused: fileVersions };
}

function reportOf(erasure: Erasure, finishedAt: Date): ErasureReport {
  const { id, kind, subjectId, wabaId, tenantId, requestedBy, createdAt, startedAt, counts, refused } =
    erasure;
  return {
    version: 1,
    erasureId: id,
    kind,
    subjectId,
    wabaId,
    tenantId,
    requestedBy,
    counts,
    refused,
    requestedAt: createdAt.toISOString(),
    startedAt: (startedAt ?? createdAt).toISOString(),
    finishedAt: finishedAt.toISOString(),
  };
}

function progressOf({ state, counts }: Erasure, step: string): ErasureProgress {
  return { state, step, erased: Object.values(counts).reduce((sum, count) => sum + count, 0) };
}
