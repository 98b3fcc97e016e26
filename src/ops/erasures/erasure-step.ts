import { redactAudit } from '../../platform/audit/audit.ts';
import { sealedSecret } from '../../platform/crypto/sealed-secret.ts';
import type { SecretBox } from '../../platform/crypto/secret-box.ts';
import { type ErasureCounts, type FoundFile, removeFound } from '../../platform/erasing.ts';
import type { ObjectStore } from '../../platform/object-store/object-store.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { type Erasure, saveSubject } from './erasure-store.ts';
import type { IdTimes, JudgedIds } from './steps/customer-ids.ts';

export const ERASURE_SUBJECT = sealedSecret({ table: 'erasures', id: ['id', 'bigint'], secret: 'subject' });

export type StepTools = {
  database: Database;
  objectStore: Pick<ObjectStore, 'remove'>;
  secretBox: SecretBox;
  /** Those that have ended are passed over. */
  cancelWorkflows: (workflowIds: readonly string[]) => Promise<void>;
};

export type ErasureSubject = Pick<JudgedIds, 'heldUntil'> & {
  wabaIds: readonly string[];
  contactIds: readonly string[];
  conversationIds: readonly string[];
  /** Phone numbers and user ids of the customer, or the id of the group. */
  ids: readonly string[];
  /** Of messages, as far as they were gone over. */
  seen: IdTimes;
  isGroup: boolean;
  /** Null: whatever number of the WABA. */
  phoneNumberId: string | null;
};

export const NOTHING: ErasureSubject = {
  wabaIds: [],
  contactIds: [],
  conversationIds: [],
  ids: [],
  seen: {},
  heldUntil: {},
  isGroup: false,
  phoneNumberId: null,
};

export type StepContext = StepTools & {
  erasure: Erasure;
  subject: ErasureSubject;
  wabaId: string;
};

/** Where the next batch of the step begins; null: the step is done. */
export type BatchEnd = { after: string | null; counts?: ErasureCounts };

/** Batches are bounded and each is one transaction. */
export type ErasureStep = {
  name: string;
  /** Runs before the transaction: it may be cut off and is then repeated. Throws NotYetErased. */
  prepare?: (context: StepContext, after: string | null) => Promise<void>;
  /** Runs before the transaction; returns the ids of the rows whose objects it removed. Throws NotYetErased. */
  removeFiles?: (context: StepContext) => Promise<readonly string[]>;
  /** `removed`: the rows whose objects are gone. Throws NotYetErased, which undoes the batch. */
  erase: (
    trx: Transaction,
    context: StepContext,
    after: string | null,
    removed: readonly string[],
  ) => Promise<BatchEnd>;
};

/** A step of equal batches; done when one finds nothing. */
export function rowStep(
  name: string,
  count: string,
  erase: (trx: Transaction, wabaId: string) => Promise<number>,
): ErasureStep {
  return {
    name,
    async erase(trx, { wabaId }) {
      const gone = await erase(trx, wabaId);
      return { after: gone === 0 ? null : '', counts: { [count]: gone } };
    },
  };
}

/** Entries of the audit log in which an early version named events, whose ids hold numbers. */
export const auditStep = rowStep('audit log', 'auditEntries', redactAudit);

type FileRows = {
  count: string;
  limit: number;
  find: (database: Database, wabaId: string, limit: number) => Promise<FoundFile[]>;
  erase: (trx: Transaction, ids: readonly string[]) => Promise<number>;
};

/** Objects go before rows. */
export function fileStep(name: string, { count, limit, find, erase }: FileRows): ErasureStep {
  return {
    name,
    removeFiles: async ({ database, objectStore, wabaId }) =>
      await removeFound(objectStore, await find(database, wabaId, limit)),
    async erase(trx, _context, _after, removed) {
      const gone = await erase(trx, removed);
      return { after: removed.length < limit ? null : '', counts: { [count]: gone } };
    },
  };
}

export function openSubject(secretBox: SecretBox, { id, subjectSealed }: Erasure): ErasureSubject {
  if (subjectSealed === null) return NOTHING;
  return JSON.parse(secretBox.open(subjectSealed, ERASURE_SUBJECT.place(id))) as ErasureSubject;
}

/** By id, the time until which what carries it is the subject's. */
export function idUntils({ subject, erasure }: StepContext): ReadonlyMap<string, string> {
  const cutOffAt = (erasure.startedAt ?? new Date()).toISOString();
  return new Map(subject.ids.map((id) => [id, subject.heldUntil[id] ?? cutOffAt]));
}

export async function sealSubject(
  trx: Transaction,
  secretBox: SecretBox,
  erasureId: string,
  subject: ErasureSubject,
): Promise<void> {
  const sealed = secretBox.seal(JSON.stringify(subject), ERASURE_SUBJECT.place(erasureId));
  await saveSubject(trx, erasureId, sealed);
}
