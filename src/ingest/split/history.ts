import {
  items,
  type JsonNode,
  member,
  parseJson,
  sourceOf,
  stringOf,
  textOf,
} from '../../platform/json/json-text.ts';
import { boundedIdOf } from '../../platform/json/storable-text.ts';
import { type AppMessage, readAppMessage } from './echoes.ts';
import { timestampOf, waIdOf } from './item-context.ts';

/** Some messages of one thread, the oldest first, as upstream wrote them. */
export type HistoryPiece = {
  waId: string;
  businessPhone: string | null;
  phase: number;
  chunk: number;
  messagesJson: string;
};

const MESSAGES_PER_PIECE = 100;

/**
 * The messages of a value of the field `history`. Its form is after webhooks/reference/history below
 * developers.facebook.com/documentation/business-messaging/whatsapp: several threads, each with one customer; thousands of
 * messages in one value, at first without the ids of files: those of the last 14 days come in further values, as `messages`.
 */
export function readHistory(value: JsonNode): HistoryPiece[] {
  const display = boundedIdOf(member(member(value, 'metadata'), 'display_phone_number'));
  const businessPhone = display === null ? null : waIdOf(display);
  const threads = items(member(value, 'history')).flatMap((part) => {
    const metadata = member(part, 'metadata');
    const [phase, chunk] = [wholeNumberOf(metadata, 'phase'), wholeNumberOf(metadata, 'chunk_order')];
    return items(member(part, 'threads')).flatMap((thread) => {
      const id = boundedIdOf(member(thread, 'id'));
      if (id === null) return [];
      const about = { waId: waIdOf(id), businessPhone, phase, chunk };
      return piecesOf(member(thread, 'messages')).map((messagesJson) => ({ ...about, messagesJson }));
    });
  });
  return [...threads, ...filesIn(value, businessPhone)];
}

/** Behind all threads. */
const PHASE_OF_FILES = 3;

/** Messages with the ids of their files, which follow those of the threads; each by itself, as each names its customer. */
function filesIn(value: JsonNode, businessPhone: string | null): HistoryPiece[] {
  return items(member(value, 'messages')).flatMap((message) => {
    if (message.kind !== 'object' || message.tooDeep) return [];
    const [from, to] = [boundedIdOf(member(message, 'from')), boundedIdOf(member(message, 'to'))];
    const customer = to ?? (from === null || waIdOf(from) === businessPhone ? null : from);
    const waId = customer === null ? UNKNOWN : waIdOf(customer);
    const messagesJson = `[${sourceOf(message)}]`;
    return [{ waId, businessPhone, phase: PHASE_OF_FILES, chunk: 0, messagesJson }];
  });
}

/** Of a piece that does not say with whom it is: it completes what is there. */
export const UNKNOWN = '';

const MAX_INTEGER = 2 ** 31 - 1;

function wholeNumberOf(node: JsonNode | null, name: string): number {
  const number = Number(textOf(member(node, name)) ?? 0);
  return Number.isInteger(number) && number >= 0 && number <= MAX_INTEGER ? number : 0;
}

function piecesOf(messages: JsonNode | null): string[] {
  const timeOf = (message: JsonNode) => timestampOf(member(message, 'timestamp'))?.getTime() ?? 0;
  const inOrder = items(messages)
    .filter((message) => message.kind === 'object' && !message.tooDeep)
    .map((message) => ({ atMs: timeOf(message), json: sourceOf(message) }))
    .sort((one, other) => one.atMs - other.atMs);
  const pieces: string[] = [];
  for (let from = 0; from < inOrder.length; from += MESSAGES_PER_PIECE) {
    const some = inOrder.slice(from, from + MESSAGES_PER_PIECE);
    pieces.push(`[${some.map(({ json }) => json).join(',')}]`);
  }
  return pieces;
}

/** A message from before the number came to the platform; `state` is what became of one of the business. */
export type HistoryMessage = AppMessage & { direction: 'inbound' | 'outbound'; state: string | null };

const STATES: Readonly<Record<string, string>> = {
  pending: 'accepted',
  sent: 'sent',
  delivered: 'delivered',
  read: 'read',
  played: 'played',
  error: 'failed',
};

/** The messages of a piece; those without a usable id are left out. */
export function readHistoryMessages({
  messagesJson,
  businessPhone,
}: Pick<HistoryPiece, 'messagesJson' | 'businessPhone'>): HistoryMessage[] {
  return items(parseJson(messagesJson, { deepNodes: 'mark' })).flatMap((node) => {
    try {
      const message = readAppMessage(node);
      if (message === null) return [];
      const from = stringOf(member(node, 'from'));
      const isOfBusiness =
        (from !== null && waIdOf(from) === businessPhone) || textOf(member(node, 'to')) !== null;
      const status = stringOf(member(member(node, 'history_context'), 'status'))?.toLowerCase() ?? '';
      const state = isOfBusiness && Object.hasOwn(STATES, status) ? (STATES[status] ?? null) : null;
      return [{ ...message, direction: isOfBusiness ? ('outbound' as const) : ('inbound' as const), state }];
    } catch {
      // An id is too long.
      return [];
    }
  });
}
