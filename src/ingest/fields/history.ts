import { shardOf } from '../../engine/inbox/shards.ts';
import { findNumberOwners } from '../../features/accounts/number-owners.ts';
import { lockCustomers } from '../../features/customers/customers-lock.ts';
import {
  completePlaceholders,
  insertAppMessages,
  noteFormerStates,
} from '../../features/messages/app-messages.ts';
import type { ErasedTable } from '../../platform/erasing.ts';
import { columnsOf, textArray } from '../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { isTransientError } from '../../platform/postgres/error-class.ts';
import { execute, query } from '../../platform/postgres/sql.ts';
import { conversationsWith } from '../senders/customer-conversations.ts';
import { type HistoryMessage, type HistoryPiece, readHistoryMessages, UNKNOWN } from '../split/history.ts';
import { FILE_EVERY_MS, saveAppMedia } from './app-media.ts';

export type OwnedPiece = HistoryPiece & { wabaId: string; phoneNumberId: string };

export async function keepHistory(trx: Transaction, pieces: readonly OwnedPiece[]): Promise<void> {
  if (pieces.length === 0) return;
  await execute(
    trx,
    `insert into history_pieces (waba_id, phone_number_id, wa_id, business_phone, phase, chunk, messages)
     select waba_id, phone_number_id, wa_id, business_phone, phase, chunk, messages
       from unnest(:wabaId::text[], :phoneNumberId::text[], :waId::text[], :businessPhone::text[], :phase::integer[], :chunk::integer[], :messagesJsons::text[]) with ordinality
         as g (waba_id, phone_number_id, wa_id, business_phone, phase, chunk, messages, n) order by n`,
    {
      ...columnsOf(pieces, 'wabaId', 'phoneNumberId', 'waId', 'businessPhone', 'phase', 'chunk'),
      messagesJsons: textArray(pieces.map(({ messagesJson }) => messagesJson)),
    },
  );
}

/** Chunks come in any order: those of one moment have their order again when each has waited so long. */
const SETTLED_SECONDS = 20;

/** Files are to leave slots for those that come now; the next turn is a minute later. */
const FILES_PER_TURN = 100;

/** Pieces that cannot be stored were left out. */
class HistoryError extends Error {
  constructor(pieces: number, cause: unknown) {
    super(`${pieces} pieces of history cannot be stored; they are in their events alone`, { cause });
    this.name = 'HistoryError';
  }
}

/**
 * Puts the history that waits into its conversations, phase by phase and chunk by chunk, each piece in a short transaction
 * beside what comes now, until there is none or `ending` is aborted. One that cannot be stored holds up no other.
 */
export async function ingestHistory(
  database: Database,
  ending: AbortSignal,
  settledSeconds = SETTLED_SECONDS,
): Promise<void> {
  const failures: unknown[] = [];
  let files = 0;
  while (!ending.aborted && files < FILES_PER_TURN) {
    const [next] = await query<{ id: string; wabaId: string }>(
      database,
      `select id, waba_id as "wabaId" from history_pieces where received_at <= now() - :settledSeconds * interval '1 second'
        order by phone_number_id, phase, chunk, id limit 1`,
      { settledSeconds },
    );
    if (next === undefined) break;
    try {
      const startMs = files * FILE_EVERY_MS;
      files += await database.transaction((trx) => ingestPiece(trx, next, startMs));
    } catch (error) {
      if (isTransientError(error)) throw error;
      await execute(database, 'delete from history_pieces where id = :id', { id: next.id });
      failures.push(error);
    }
  }
  if (failures.length > 0) throw new HistoryError(failures.length, failures[0]);
}

/** Stores a piece; returns how many files of it are to be fetched, the first of them in `startMs`. */
async function ingestPiece(
  trx: Transaction,
  { id, wabaId }: { id: string; wabaId: string },
  startMs: number,
): Promise<number> {
  await lockCustomers(trx, shardOf(wabaId));
  // An erasure of the customer has deleted it meanwhile.
  const [piece] = await query<OwnedPiece>(
    trx,
    `delete from history_pieces where id = :id
     returning waba_id as "wabaId", phone_number_id as "phoneNumberId", wa_id as "waId", phase, chunk,
               business_phone as "businessPhone", messages as "messagesJson"`,
    { id },
  );
  if (piece === undefined) return 0;
  const { phoneNumberId, waId } = piece;
  const owner = (await findNumberOwners(trx, [phoneNumberId])).get(phoneNumberId);
  const messages = readHistoryMessages(piece).map((message) => ({ ...message, wabaId, phoneNumberId }));
  if (owner?.wabaId !== wabaId || owner.removed || messages.length === 0) return 0;
  const withFile = messages.filter(({ media }) => media !== null);
  await completePlaceholders(
    trx,
    withFile.map(({ rawJson: content, ...message }) => ({ ...message, content })),
  );
  if (waId !== UNKNOWN) await insertPiece(trx, { wabaId, phoneNumberId, waId }, messages);
  await noteFormerStates(
    trx,
    messages.flatMap(({ state, upstreamId, sentAt }) =>
      state === null ? [] : [{ phoneNumberId, upstreamId, status: state, at: sentAt }],
    ),
  );
  return await saveAppMedia(trx, withFile, startMs);
}

async function insertPiece(
  trx: Transaction,
  about: { wabaId: string; phoneNumberId: string; waId: string },
  messages: readonly HistoryMessage[],
): Promise<void> {
  const { wabaId, phoneNumberId } = about;
  const [conversationId = ''] = await conversationsWith(trx, [{ ...about, userId: null }], {
    isActivity: true,
  });
  await insertAppMessages(
    trx,
    messages.map(({ rawJson: content, state: _state, media: _media, ...message }) => ({
      ...message,
      content,
      wabaId,
      phoneNumberId,
      conversationId,
      origin: 'history' as const,
    })),
  );
}

/** Forgets the history with customers that waits; null: at every number. */
export async function dropHistory(
  trx: Transaction,
  {
    wabaId,
    waIds,
    phoneNumberId,
  }: { wabaId: string; waIds: readonly string[]; phoneNumberId: string | null },
): Promise<number> {
  return await execute(
    trx,
    `delete from history_pieces where waba_id = :wabaId and wa_id = any (cast(:waIds as text[]))
        and (cast(:phoneNumberId as text) is null or phone_number_id = :phoneNumberId)`,
    { wabaId, waIds: [...waIds], phoneNumberId },
  );
}

export const HISTORY_PIECES: ErasedTable = { table: 'history_pieces', count: 'historyPieces', key: 'id' };
