import { columnsOf, textArray } from '../../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import { execute, queryColumn, queryOne, queryOnly } from '../../../platform/postgres/sql.ts';
import { paceOfNumber } from '../../accounts/number-pace.ts';
import { knownUpstreamMedia } from './media-uploads.ts';
import type { OrderPayment } from './message-content.ts';
import { closeSchedule, SHOWN_STATE } from './scheduled-messages.ts';
import { heldBySchedule, NOT_HELD } from './scheduled-turn.ts';
import type { SendError } from './send-error.ts';
import { drawSendTime, numberPace, PAIR_PACE, type Pace, type Paced } from './send-pacing.ts';

/**
 * queued: waits for its turn or its next attempt; sending: an attempt is under way; accepted: upstream has it;
 * failed: it will not be sent; unknown: an attempt ended without an answer, so upstream may have it or not.
 */
export type SendState = 'queued' | 'sending' | 'accepted' | 'failed' | 'unknown';

/** As tenants see it. scheduled: queued, and its time has not come or its turn behind others; cancelled: failed by the tenant's own wish. */
export type ShownState = SendState | 'scheduled' | 'cancelled';

/** The caller holds their conversations locked. */
export async function drawMessageIds(trx: Transaction, count: number): Promise<string[]> {
  const text = `select nextval(pg_get_serial_sequence('messages', 'id')) from generate_series(1, :count::integer)`;
  return await queryColumn<string>(trx, text, { count });
}

export type SendPath = 'messages' | 'marketing_messages';

export type NewOutboundMessage = {
  id: string;
  wabaId: string;
  phoneNumberId: string;
  conversationId: string;
  /** Digits of a phone, a business-scoped user id, or the id of a group. */
  recipient: string;
  type: string;
  /** JSON text. */
  content: string;
  contextId: string | null;
  targetId: string | null;
  mediaIds: readonly string[];
  payment: OrderPayment | null;
  apiKeyId: string | null;
  upstreamPath: SendPath;
};

export async function insertOutboundMessages(
  trx: Transaction,
  messages: readonly NewOutboundMessage[],
): Promise<void> {
  const rows = messages.map(({ mediaIds, payment, ...row }) => ({
    ...row,
    mediaIds: mediaIds.length === 0 ? null : `{${mediaIds.join()}}`,
    referenceId: payment?.referenceId ?? null,
    configuration: payment?.configuration ?? null,
  }));
  await execute(
    trx,
    `with given as (
       select * from unnest(:id::bigint[], :wabaId::text[], :phoneNumberId::text[], :conversationId::bigint[], :type::text[], :content::text[],
                            :contextId::text[], :targetId::text[], :recipient::text[], :mediaIds::text[], :referenceId::text[],
                            :configuration::text[], :apiKeyId::bigint[], :upstreamPath::text[])
         as g (id, waba_id, phone_number_id, conversation_id, type, content, context_id, target_id, recipient, media_ids, reference_id,
               configuration, api_key_id, upstream_path)),
     stored as (
       insert into messages (id, waba_id, phone_number_id, conversation_id, direction, type, content, context_id, target_id)
       select id, waba_id, phone_number_id, conversation_id, 'outbound', type, content, context_id, target_id from given)
     insert into outbound_messages (message_id, waba_id, phone_number_id, recipient, media_ids, payment_reference,
                                    payment_configuration, api_key_id, upstream_path)
     select id, waba_id, phone_number_id, recipient, cast(media_ids as uuid[]), reference_id, configuration, api_key_id, upstream_path from given`,
    {
      ...columnsOf(rows, 'id', 'wabaId', 'phoneNumberId', 'conversationId', 'type', 'contextId', 'targetId'),
      ...columnsOf(rows, 'recipient', 'mediaIds', 'referenceId', 'configuration', 'apiKeyId', 'upstreamPath'),
      content: textArray(rows.map((row) => row.content)),
    },
  );
}

export type SendTurn =
  /** The caller sends it; no other does until `timeoutMs` are over. */
  | {
      kind: 'send';
      attempt: number;
      phoneNumberId: string;
      conversationId: string;
      upstreamPath: SendPath;
      recipient: string;
      payloadJson: string;
      /** What upstream calls its files of ours, by our uuid. */
      upstreamMedia: ReadonlyMap<string, string>;
      ageMs: number;
      isScheduled: boolean;
      /** How long it may be tried; null: as long as any message. */
      retryMs: number | null;
      /** Of its broadcast as it leaves; null within: it is of none. */
      broadcast: { runningSince: Date | null };
      /** It was looked whether its customer wants it. */
      isWanted?: true;
    }
  /** Upstream has to be given these files of ours first. */
  | { kind: 'media'; missing: readonly string[]; phoneNumberId: string; ageMs: number }
  | { kind: 'wait'; waitMs: number; reason: string }
  /** It is not to be sent any more. */
  | { kind: 'ended'; error: SendError }
  /** An attempt is under way elsewhere, or was lost; in `waitMs` it can only be the latter. */
  | { kind: 'under_way'; waitMs: number }
  | { kind: 'lost' }
  | { kind: 'over'; state: SendState };

type Row = {
  state: SendState;
  attempts: number;
  phoneNumberId: string;
  conversationId: string;
  recipient: string;
  pairMs: number | null;
  numberMs: number | null;
  leftMs: number | null;
  ageMs: number;
  upstreamPath: SendPath;
  payloadJson: string;
  mediaIds: string[] | null;
  /** Of its number, as operators set it and as upstream allows; null: neither is known. */
  messagesPerSecond: number | null;
  upstreamPerSecond: number | null;
  isScheduled: boolean;
};

const NO_MEDIA: ReadonlyMap<string, string> = new Map();

export type SendTurnLimits = {
  timeoutMs: number;
  retryMs: number;
  messagesPerSecond: number | null;
};

/** `messagesPerSecond` holds for numbers without their own pace; null: as upstream allows. */
export async function takeSendTurn(
  database: Database,
  wabaId: string,
  messageId: string,
  limits: SendTurnLimits,
): Promise<SendTurn> {
  return await database.transaction(async (trx) => {
    const row = await lockMessage(trx, wabaId, messageId);
    if (row === null || !['queued', 'sending'].includes(row.state)) {
      return { kind: 'over', state: row?.state ?? 'failed' };
    }
    if (row.state === 'sending') {
      const waitMs = Math.ceil(row.leftMs ?? 0);
      return waitMs > 0 ? { kind: 'under_way', waitMs } : { kind: 'lost' };
    }
    const perSecond = paceOfNumber(row, limits.messagesPerSecond);
    const { retryMs } = limits;
    const held = row.isScheduled
      ? await heldBySchedule(trx, { messageId, ...row }, { retryMs, messagesPerSecond: perSecond })
      : NOT_HELD;
    if (held.kind !== 'free') return held;
    const { mediaIds } = row;
    const upstreamMedia =
      mediaIds === null ? NO_MEDIA : await knownUpstreamMedia(trx, row.phoneNumberId, mediaIds);
    const missing = mediaIds?.filter((uuid) => !upstreamMedia.has(uuid)) ?? [];
    if (missing.length > 0) {
      return { kind: 'media', missing, phoneNumberId: row.phoneNumberId, ageMs: row.ageMs };
    }
    const waits = await takeTimes(trx, { messageId, ...row }, numberPace(perSecond), limits.timeoutMs);
    if (waits !== null) return waits;
    const { isScheduled } = row;
    if (isScheduled) await closeSchedule(trx, messageId);
    const { phoneNumberId, conversationId, upstreamPath, recipient, payloadJson, ageMs } = row;
    const attempt = row.attempts + 1;
    const message = { phoneNumberId, conversationId, upstreamPath, recipient, payloadJson };
    return { ...held, kind: 'send', attempt, ...message, upstreamMedia, ageMs, isScheduled };
  });
}

async function lockMessage(trx: Transaction, wabaId: string, messageId: string): Promise<Row | null> {
  const untilMs = (column: string) =>
    `cast(extract(epoch from ${column} - clock_timestamp()) * 1000 as double precision)`;
  return await queryOne<Row>(
    trx,
    `select o.state, o.attempts, o.phone_number_id as "phoneNumberId", o.recipient, o.upstream_path as "upstreamPath", m.content as "payloadJson",
            m.conversation_id as "conversationId",
            o.media_ids as "mediaIds", n.messages_per_second as "messagesPerSecond", n.upstream_per_second as "upstreamPerSecond", ${untilMs('o.pair_at')} as "pairMs", ${untilMs('o.number_at')} as "numberMs",
            ${untilMs('o.sending_until')} as "leftMs", -${untilMs('coalesce(sm.send_at, o.created_at)')} as "ageMs",
            sm.message_id is not null as "isScheduled"
       from outbound_messages o join messages m on m.id = o.message_id
       left join phone_numbers n on n.phone_number_id = o.phone_number_id
       left join scheduled_messages sm on sm.message_id = o.message_id
      where o.message_id = :messageId and o.waba_id = :wabaId for update of o`,
    { messageId, wabaId },
  );
}

/** Draws the times that were not drawn yet, keeps them, and takes the attempt when they have come; else the wait. */
async function takeTimes(
  trx: Transaction,
  row: Pick<Row, 'pairMs' | 'numberMs' | 'phoneNumberId' | 'recipient'> & { messageId: string },
  pace: Pace,
  timeoutMs: number,
): Promise<Extract<SendTurn, { kind: 'wait' }> | null> {
  const { messageId, phoneNumberId, recipient } = row;
  const pair = await drawOnce(trx, row.pairMs, { phoneNumberId, recipient }, PAIR_PACE);
  const waitsForPair = pair.waitMs > 0;
  const number = waitsForPair
    ? null
    : await drawOnce(trx, row.numberMs, { phoneNumberId, recipient: null }, pace);
  const waitMs = Math.ceil(number?.waitMs ?? pair.waitMs);
  const reason = waitsForPair ? 'the limit of its recipient' : 'the limit of its number';
  const wait = waitMs > 0 ? ({ kind: 'wait', waitMs, reason } as const) : null;
  const drawn = { pairAt: pair.at, numberAt: number?.at ?? null };
  // A look at what was drawn before changes nothing.
  if (wait !== null && drawn.pairAt === null && drawn.numberAt === null) return wait;
  await execute(
    trx,
    `update outbound_messages
        set pair_at = coalesce(cast(:pairAt as timestamptz), pair_at), number_at = coalesce(cast(:numberAt as timestamptz), number_at),
            state = case when :leaves then 'sending' else state end, attempts = attempts + case when :leaves then 1 else 0 end,
            sending_until = case when :leaves then clock_timestamp() + :timeoutMs * interval '1 millisecond' else sending_until end
      where message_id = :messageId`,
    { messageId, ...drawn, leaves: wait === null, timeoutMs },
  );
  return wait;
}

/** `at`: null where it was drawn before, to come in `drawnMs`. */
async function drawOnce(trx: Transaction, drawnMs: number | null, paced: Paced, pace: Pace) {
  return drawnMs === null ? await drawSendTime(trx, paced, pace) : { at: null, waitMs: drawnMs };
}

/** One attempt: nothing that came of an earlier one may overwrite a later one. */
export type SendAttempt = { wabaId: string; messageId: string; attempt: number };

/** `redrawPair`: the time for the recipient is drawn again. */
export async function requeueMessage(
  trx: Transaction,
  { wabaId, messageId, attempt }: SendAttempt,
  { error, redrawPair }: { error: string; redrawPair: boolean },
): Promise<void> {
  await execute(
    trx,
    `update outbound_messages
        set state = 'queued', number_at = null, pair_at = case when :redrawPair then null else pair_at end,
            sending_until = null, error = :error
      where message_id = :messageId and waba_id = :wabaId and state = 'sending' and attempts = :attempt`,
    { wabaId, messageId, attempt, error, redrawPair },
  );
}

export type AcceptedMessage = { upstreamId: string; messageStatus: string | null; waId: string | null };

/** Also after `unknown`: a late answer is better than none. One that has ended otherwise stays as it is. */
export async function acceptMessages(
  trx: Transaction,
  wabaId: string,
  messages: readonly (AcceptedMessage & { messageId: string })[],
): Promise<void> {
  await execute(
    trx,
    `with given as (
       select *, row_number() over (partition by upstream_id order by id) as nth
         from unnest(:messageId::bigint[], :upstreamId::text[], :messageStatus::text[], :waId::text[]) as g (id, upstream_id, status, wa_id)),
     accepted as (
       update outbound_messages o
          set state = 'accepted', upstream_id = g.upstream_id, upstream_status = g.status, wa_id = g.wa_id, error = null,
              sending_until = null, finished_at = now()
         from given g where o.message_id = g.id and o.waba_id = :wabaId and o.state in ('sending', 'unknown') returning g.*)
     update messages m
        set sent_at = now(),
            upstream_id = (select a.upstream_id where a.nth = 1 and not exists (
              select 1 from messages o where o.phone_number_id = m.phone_number_id and o.upstream_id = a.upstream_id))
       from accepted a where m.id = a.id and m.waba_id = :wabaId and m.upstream_id is null`,
    { wabaId, ...columnsOf(messages, 'messageId', 'upstreamId', 'messageStatus', 'waId') },
  );
}

/** False when the message is not in one of `from` any more. */
export async function endMessage(
  trx: Transaction,
  { wabaId, messageId }: Omit<SendAttempt, 'attempt'>,
  end: { state: 'failed' | 'unknown'; from: readonly SendState[]; error: string },
): Promise<boolean> {
  const changed = await execute(
    trx,
    `update outbound_messages set state = :state, error = :error, sending_until = null, finished_at = now()
      where message_id = :messageId and waba_id = :wabaId and state = any (:from::text[])`,
    { state: end.state, error: end.error, messageId, wabaId, from: end.from },
  );
  if (changed > 0) await closeSchedule(trx, messageId);
  return changed > 0;
}

export type FailedMessage = {
  tenantId: string;
  phoneNumberId: string;
  displayPhoneNumber: string;
  conversationId: string;
  recipient: string;
  type: string;
  content: string;
};

export async function findFailedMessage(
  trx: Transaction,
  wabaId: string,
  messageId: string,
): Promise<FailedMessage> {
  return await queryOnly<FailedMessage>(
    trx,
    `select w.tenant_id as "tenantId", m.phone_number_id as "phoneNumberId",
            n.display_phone_number as "displayPhoneNumber", m.conversation_id as "conversationId", o.recipient,
            m.content, m.type
       from outbound_messages o join messages m on m.id = o.message_id join wabas w on w.waba_id = o.waba_id
       join phone_numbers n on n.phone_number_id = o.phone_number_id
      where o.message_id = :messageId and o.waba_id = :wabaId`,
    { messageId, wabaId },
  );
}

export type SendProgress = {
  state: ShownState;
  /** Of a scheduled message. */
  sendAt: Date | null;
  conversationId: string;
  upstreamId: string | null;
  upstreamStatus: string | null;
  /** The recipient as upstream knows it; null for a recipient without a phone number. */
  waId: string | null;
  error: string | null;
};

export async function findSendProgress(
  database: Database,
  wabaId: string,
  messageId: string,
): Promise<SendProgress | null> {
  return await queryOne<SendProgress>(
    database,
    `select ${SHOWN_STATE} as state, sm.send_at as "sendAt", m.conversation_id as "conversationId", o.upstream_id as "upstreamId",
            o.upstream_status as "upstreamStatus", o.wa_id as "waId", o.error
       from outbound_messages o join messages m on m.id = o.message_id
       left join scheduled_messages sm on sm.message_id = o.message_id
      where o.message_id = :messageId and o.waba_id = :wabaId`,
    { messageId, wabaId },
  );
}
