import { hasNewBodies } from '../../../engine/inbox/bodies.ts';
import { holdIntake, lockIntake } from '../../../engine/inbox/intake-lock.ts';
import { shardOf } from '../../../engine/inbox/shards.ts';
import { lockCustomers } from '../../../features/customers/customers-lock.ts';
import {
  cutOffContacts,
  cutOffConversations,
  type ErasedPerson,
  eraseCustomers,
} from '../../../features/customers/erase-customers.ts';
import { eraseAliases } from '../../../features/customers/phone-aliases.ts';
import { eraseRecipients } from '../../../features/messages/erase-broadcasts.ts';
import {
  eraseMessages,
  erasePacing,
  quietMessages,
  rememberMessages,
  stopSends,
} from '../../../features/messages/erase-messages.ts';
import { eraseUploads, uploadsOfWaba } from '../../../features/messages/erase-waba-messages.ts';
import {
  type ErasedMessage,
  messagesOfGroup,
  newestMessagesOf,
  nextMessagesOf,
} from '../../../features/messages/erased-messages.ts';
import { eraseFromBodies, FIRST_BODY } from '../../../ingest/bodies/erase-bodies.ts';
import { dropHistory } from '../../../ingest/fields/history.ts';
import { NotYetErased } from '../../../platform/erasing.ts';
import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import { query } from '../../../platform/postgres/sql.ts';
import {
  auditStep,
  type BatchEnd,
  type ErasureStep,
  type ErasureSubject,
  fileStep,
  idUntils,
  type StepContext,
  sealSubject,
} from '../erasure-step.ts';
import { judgeIds, seeIds } from './customer-ids.ts';
import { eventScan, paymentScan, statusScan } from './scans.ts';

const MESSAGES_PER_BATCH = 100;

/** From here on the customer is a new one, in a new conversation. What upstream had sent before is ingested first. */
const cutOff: ErasureStep = {
  name: 'cut off',
  async prepare({ database, wabaId, erasure }) {
    const isBehind = await hasNewBodies(database, wabaId, erasure.createdAt);
    if (isBehind) throw new NotYetErased('Bodies that came before are still to be taken in.');
  },
  async erase(trx, context) {
    const { wabaId, erasure, subject, secretBox } = context;
    await lockIntake(trx, shardOf(wabaId));
    await lockCustomers(trx, shardOf(wabaId));
    const cut =
      erasure.kind === 'customer'
        ? await cutOffCustomer(trx, wabaId, subject)
        : await cutOffConversation(trx, wabaId, subject);
    // From here on a status of one of these would bring the customer back.
    await rememberMessages(trx, await newestMessages(trx, wabaId, cut, null));
    await sealSubject(trx, secretBox, erasure.id, cut);
    return { after: null, counts: { historyPieces: await dropHistoryOf(trx, wabaId, cut) } };
  },
};

/** What waits to be put into the conversations of a customer, under ids that are known by now. */
const history: ErasureStep = {
  name: 'history',
  async erase(trx, { wabaId, subject }) {
    return { after: null, counts: { historyPieces: await dropHistoryOf(trx, wabaId, subject) } };
  },
};

async function dropHistoryOf(trx: Transaction, wabaId: string, subject: ErasureSubject): Promise<number> {
  const { ids: waIds, isGroup, phoneNumberId } = subject;
  return isGroup ? 0 : await dropHistory(trx, { wabaId, waIds, phoneNumberId });
}

/** Of messages without a sender there is one contact per WABA, with an empty id. */
function idsOf(people: readonly ErasedPerson[]): string[] {
  return people
    .flatMap(({ userId, waId }) => [userId, waId])
    .filter((id) => id !== null && id !== '') as string[];
}

async function cutOffCustomer(
  trx: Transaction,
  wabaId: string,
  subject: ErasureSubject,
): Promise<ErasureSubject> {
  const { people, conversationIds } = await cutOffContacts(trx, wabaId, subject);
  const contactIds = people.map(({ id }) => id);
  const ids = [...new Set([...subject.ids, ...idsOf(people)])];
  return { ...subject, contactIds, ids, conversationIds };
}

async function cutOffConversation(
  trx: Transaction,
  wabaId: string,
  subject: ErasureSubject,
): Promise<ErasureSubject> {
  const { people, groupIds, ...found } = await cutOffConversations(trx, wabaId, subject.conversationIds);
  const isGroup = groupIds.length > 0;
  return { ...subject, ...found, ids: isGroup ? groupIds : idsOf(people), isGroup };
}

const REMEMBERED_PER_BATCH = 2_000;

/** Upstream has most to report of the newest. */
const newestMessages = (
  database: Database,
  wabaId: string,
  { conversationIds }: ErasureSubject,
  before: string | null,
) => newestMessagesOf(database, { wabaId, conversationIds, limit: REMEMBERED_PER_BATCH }, before);

/** Before messages go, which takes a while: intake drops what comes of them. */
const remembered: ErasureStep = {
  name: 'what must not come back',
  prepare: async ({ database, wabaId, subject }, after) =>
    await stopSends(database, await newestMessages(database, wabaId, subject, after)),
  async erase(trx, { wabaId, subject }, after) {
    const found = await newestMessages(trx, wabaId, subject, after);
    await remember(trx, wabaId, found);
    return { after: found.length < REMEMBERED_PER_BATCH ? null : (found.at(-1)?.id ?? null) };
  },
};

/** Intake has ingested what it saw of them before, and drops what it sees from then on. */
async function remember(trx: Transaction, wabaId: string, found: readonly ErasedMessage[]): Promise<void> {
  await holdIntake(trx, shardOf(wabaId));
  await rememberMessages(trx, found);
}

const findIds: ErasureStep = {
  name: 'ids',
  async erase(trx, { erasure, subject, secretBox, wabaId }, after) {
    if (subject.isGroup) return { after: null };
    const { seen, next } = await seeIds(trx, { ...subject, wabaId }, subject.seen, after);
    const judged = next === null ? await judgeIds(trx, { ...subject, wabaId }, seen) : {};
    await sealSubject(trx, secretBox, erasure.id, { ...subject, seen, ...judged });
    return { after: next };
  },
};

const rawBodies: ErasureStep = {
  name: 'raw bodies',
  async erase(trx, context, after) {
    const { wabaId, subject } = context;
    if (subject.ids.length === 0) return { after: null };
    const place = after === null ? FIRST_BODY : JSON.parse(after);
    const { isGroup, phoneNumberId } = subject;
    const who = { wabaId, isGroup, phoneNumberId, untils: idUntils(context) };
    const { next, changed, deleted, busy } = await eraseFromBodies(trx, who, place);
    if (busy) throw new NotYetErased('A body that was put back is still to be taken in.');
    const counts = { rawBodiesDeleted: deleted, rawBodiesCut: changed };
    return { after: next === null ? null : JSON.stringify(next), counts };
  },
};

const messages: ErasureStep = {
  name: 'messages',
  prepare: async (context) =>
    await quietMessages(context, context.wabaId, await nextMessages(context.database, context)),
  async erase(trx, context) {
    const found = await nextMessages(trx, context);
    const counts = await eraseMessages(trx, context.wabaId, found);
    return { after: found.length === 0 ? null : '', counts };
  },
};

const nextMessages = (database: Database, { wabaId, subject: { conversationIds } }: StepContext) =>
  nextMessagesOf(database, { wabaId, conversationIds, limit: MESSAGES_PER_BATCH });

const groupMessages: ErasureStep = {
  name: 'messages in groups',
  prepare: async (context, after) => {
    const { theirs } = await nextOfGroups(context.database, context, after);
    if (theirs.length > 0) await context.database.transaction((trx) => remember(trx, context.wabaId, theirs));
    await quietMessages(context, context.wabaId, theirs);
  },
  async erase(trx, context, after) {
    if (context.erasure.kind !== 'customer') return { after: null };
    const { theirs, next } = await nextOfGroups(trx, context, after);
    return { after: next, counts: await eraseMessages(trx, context.wabaId, theirs) };
  },
};

const WALKED_PER_BATCH = 2_000;

async function nextOfGroups(
  database: Database,
  context: StepContext,
  after: string | null,
): Promise<{ theirs: ErasedMessage[]; next: string | null }> {
  const { erasure, wabaId } = context;
  if (erasure.kind !== 'customer') return { theirs: [], next: null };
  const [fromConversation = '0', fromMessage = '0'] = after?.split(' ') ?? [];
  const [group] = await query<{ id: string }>(
    database,
    `select id from conversations where waba_id = :wabaId and group_id is not null and id >= :fromConversation order by id limit 1`,
    { wabaId, fromConversation },
  );
  if (group === undefined) return { theirs: [], next: null };
  const from = group.id === fromConversation ? fromMessage : '0';
  const page = { groupId: group.id, from, limit: WALKED_PER_BATCH };
  const walked = await messagesOfGroup(database, page, idUntils(context));
  const theirs = walked.filter(({ isTheirs }) => isTheirs).slice(0, MESSAGES_PER_BATCH);
  const isCut = theirs.length === MESSAGES_PER_BATCH;
  const last = isCut ? theirs.at(-1) : walked.at(-1);
  const isThrough = !isCut && walked.length < WALKED_PER_BATCH;
  const next = isThrough || last === undefined ? `${BigInt(group.id) + 1n} 0` : `${group.id} ${last.id}`;
  return { theirs, next };
}

const UPLOADS_PER_BATCH = 100;

/** The files of the tenant's that only went to this customer. */
const uploads = fileStep('uploaded files', {
  count: 'uploads',
  limit: UPLOADS_PER_BATCH,
  find: (database, wabaId, limit) => uploadsOfWaba(database, wabaId, limit, 'given up'),
  erase: eraseUploads,
});

/** The customer itself; after the erasure of a conversation, if it has no other. */
const customer: ErasureStep = {
  name: 'customer',
  async erase(trx, { erasure, wabaId, subject }): Promise<BatchEnd> {
    const { conversationIds, contactIds } = subject;
    const ids = subject.ids.filter((id) => subject.heldUntil[id] === undefined);
    const gone = await eraseCustomers(trx, { conversationIds, contactIds });
    if (erasure.kind === 'conversation' && gone.contacts === 0) return { after: null, counts: gone };
    const aliases = await eraseAliases(trx, wabaId, ids);
    const pacing = await erasePacing(trx, wabaId, ids);
    const broadcastRecipients = await eraseRecipients(trx, wabaId, ids);
    return { after: null, counts: { ...gone, aliases, pacing, broadcastRecipients } };
  },
};

export const CUSTOMER_STEPS: readonly ErasureStep[] = [
  ...[cutOff, remembered, findIds, history, rawBodies, messages, groupMessages],
  ...[statusScan, paymentScan, eventScan, uploads, customer, auditStep],
];
