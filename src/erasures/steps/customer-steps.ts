import { lockCustomers } from '../../customers/customers-lock.ts';
import {
  cutOffContacts,
  cutOffConversations,
  type ErasedPerson,
  eraseCustomers,
} from '../../customers/erase-customers.ts';
import { eraseFromBodies, FIRST_BODY } from '../../inbound/erase-bodies.ts';
import { dropHistory } from '../../inbound/history.ts';
import { holdIntake, lockIntake } from '../../inbox/intake-lock.ts';
import { shardOf } from '../../inbox/shards.ts';
import {
  ERASED_MESSAGE,
  type ErasedMessage,
  eraseMessages,
  eraseRecipient,
  quietMessages,
  rememberMessages,
  stopSends,
} from '../../messages/erase-messages.ts';
import { eraseUploads } from '../../messages/erase-waba-messages.ts';
import { NotYetErased } from '../../platform/erasing.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
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

/** From here on the customer is a new one, in a new conversation. What upstream had sent before is taken in first. */
const cutOff: ErasureStep = {
  name: 'cut off',
  async prepare({ database, wabaId, erasure }) {
    const rows = await query(
      database,
      `select 1 from inbox
        where state = 'new' and shard = ? and waba_id = ? and received_at <= ? limit 1`,
      [shardOf(wabaId), wabaId, erasure.createdAt],
    );
    if (rows.length > 0) throw new NotYetErased('Bodies that came before are still to be taken in.');
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

const PERSON = 'id, user_id as "userId", wa_id as "waId"';

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
  // It may have been merged into another one since it was asked for.
  const current = await query<{ id: string }>(
    trx,
    'select coalesce(merged_into, id) as id from conversations where waba_id = ? and id = any (?::bigint[])',
    [wabaId, subject.conversationIds],
  );
  const rows = await query<{
    id: string;
    contactId: string | null;
    groupId: string | null;
    phoneNumberId: string;
  }>(
    trx,
    `select id, contact_id as "contactId", group_id as "groupId", phone_number_id as "phoneNumberId" from conversations
      where waba_id = :wabaId
        and (id = any (cast(:ids as bigint[])) or merged_into = any (cast(:ids as bigint[])))
        for update`,
    { wabaId, ids: current.map(({ id }) => id) },
  );
  const conversationIds = rows.map(({ id }) => id);
  const contactIds = rows.flatMap(({ contactId }) => contactId ?? []);
  const groupIds = rows.flatMap(({ groupId }) => groupId ?? []);
  await cutOffConversations(trx, conversationIds);
  const people = await query<ErasedPerson>(
    trx,
    `select ${PERSON} from contacts where id = any (?::bigint[])`,
    [contactIds],
  );
  return {
    ...subject,
    conversationIds,
    contactIds,
    ids: groupIds.length > 0 ? groupIds : idsOf(people),
    isGroup: groupIds.length > 0,
    phoneNumberId: rows[0]?.phoneNumberId ?? null,
  };
}

const REMEMBERED_PER_BATCH = 2_000;

/** Those before `before`, or the newest: upstream has most to report of them. */
async function newestMessages(
  database: Database,
  wabaId: string,
  { conversationIds }: ErasureSubject,
  before: string | null,
): Promise<ErasedMessage[]> {
  return await query<ErasedMessage>(
    database,
    `select ${ERASED_MESSAGE} from unnest(cast(:conversationIds as bigint[])) as c (id)
      cross join lateral (select * from messages x where x.conversation_id = c.id and x.waba_id = :wabaId
                             and x.id < coalesce(cast(:before as bigint), 9223372036854775807)
                           order by x.id desc limit ${REMEMBERED_PER_BATCH}) as m
      order by m.id desc limit ${REMEMBERED_PER_BATCH}`,
    { conversationIds, wabaId, before },
  );
}

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

/** Intake has taken in what it saw of them before, and drops what it sees from then on. */
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

async function nextMessages(database: Database, { subject, wabaId }: StepContext): Promise<ErasedMessage[]> {
  return await query<ErasedMessage>(
    database,
    `select ${ERASED_MESSAGE} from unnest(cast(:ids as bigint[])) as c (id)
      cross join lateral (select * from messages x where x.conversation_id = c.id and x.waba_id = :wabaId
                           order by x.id limit ${MESSAGES_PER_BATCH}) as m
      limit ${MESSAGES_PER_BATCH}`,
    { ids: subject.conversationIds, wabaId },
  );
}

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
    `select id from conversations where waba_id = ? and group_id is not null and id >= ? order by id limit 1`,
    [wabaId, fromConversation],
  );
  if (group === undefined) return { theirs: [], next: null };
  const from = group.id === fromConversation ? fromMessage : '0';
  const untils = idUntils(context);
  const walked = await query<ErasedMessage & { isTheirs: boolean }>(
    database,
    `select ${ERASED_MESSAGE},
            exists (select from unnest(cast(:ids as text[]), cast(:untils as timestamptz[])) as n (name, until)
                     where name = group_sender and created_at <= until) as "isTheirs"
       from messages m where conversation_id = :groupId and id > :from order by id limit ${WALKED_PER_BATCH}`,
    { ids: [...untils.keys()], untils: [...untils.values()], groupId: group.id, from },
  );
  const theirs = walked.filter(({ isTheirs }) => isTheirs).slice(0, MESSAGES_PER_BATCH);
  const isCut = theirs.length === MESSAGES_PER_BATCH;
  const last = isCut ? theirs.at(-1) : walked.at(-1);
  const isThrough = !isCut && walked.length < WALKED_PER_BATCH;
  const next = isThrough || last === undefined ? `${BigInt(group.id) + 1n} 0` : `${group.id} ${last.id}`;
  return { theirs, next };
}

const UPLOADS_PER_BATCH = 100;

/** The files of the tenant's that only went to this customer. */
const uploads = fileStep(
  'uploaded files',
  `select id, object_key as key from media_uploads where waba_id = ? and state = 'deleted'
    order by id limit ${UPLOADS_PER_BATCH}`,
  { count: 'uploads', limit: UPLOADS_PER_BATCH, erase: eraseUploads },
);

/** The customer itself; after the erasure of a conversation, if it has no other. */
const customer: ErasureStep = {
  name: 'customer',
  async erase(trx, { erasure, wabaId, subject }): Promise<BatchEnd> {
    const { conversationIds, contactIds } = subject;
    const ids = subject.ids.filter((id) => subject.heldUntil[id] === undefined);
    const gone = await eraseCustomers(trx, { conversationIds, contactIds });
    if (erasure.kind === 'conversation' && gone.contacts === 0) return { after: null, counts: gone };
    return { after: null, counts: { ...gone, ...(await eraseRecipient(trx, wabaId, ids)) } };
  },
};

export const CUSTOMER_STEPS: readonly ErasureStep[] = [
  ...[cutOff, remembered, findIds, history, rawBodies, messages, groupMessages],
  ...[statusScan, paymentScan, eventScan, uploads, customer, auditStep],
];
