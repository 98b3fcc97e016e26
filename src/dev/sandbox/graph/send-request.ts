import { type GraphFailure, invalidParameter } from './graph-failure.ts';

/** A send that the platform would accept. */
export type SendRequest = {
  /** As the caller wrote it. */
  input: string;
  /** The recipient's phone number in digits, unless only a user id was named. */
  waId?: string;
  userId?: string;
  opaqueData?: string;
};

const SEND_TYPES = new Set([
  ...['text', 'image', 'video', 'audio', 'document', 'sticker', 'location', 'contacts'],
  ...['reaction', 'template', 'interactive'],
]);

const MAX_TEXT_CHARACTERS = 4096;
const MAX_OPAQUE_CHARACTERS = 512;

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Why the content of a send would be refused, or undefined. */
function contentProblem(body: Record<string, unknown>): GraphFailure | undefined {
  const type = body.type ?? 'text';
  if (typeof type !== 'string' || !SEND_TYPES.has(type)) {
    return invalidParameter(131009, 'Parameter type is not valid');
  }
  const content = body[type];
  const isPresent = type === 'contacts' ? Array.isArray(content) : isObject(content);
  if (!isPresent) {
    return invalidParameter(131008, `Required parameter ${type} is missing`);
  }
  if (type !== 'text' || !isObject(content)) {
    return undefined;
  }
  const text = content.body;
  if (typeof text !== 'string' || text === '') {
    return invalidParameter(131008, 'Required parameter text.body is missing');
  }
  return text.length > MAX_TEXT_CHARACTERS
    ? invalidParameter(100, `Param text['body'] must be at most ${MAX_TEXT_CHARACTERS} characters long.`)
    : undefined;
}

function recipientOf(body: Record<string, unknown>): SendRequest | undefined {
  if (typeof body.to === 'string' && /\d/.test(body.to)) {
    return { input: body.to, waId: body.to.replace(/\D/g, '') };
  }
  if (typeof body.recipient === 'string' && body.recipient !== '') {
    return { input: body.recipient, userId: body.recipient };
  }
  return undefined;
}

const MEDIA_KINDS = new Set(['image', 'video', 'audio', 'document', 'sticker']);

/** The files that a message names by their ids, at any depth. */
export function mediaIdsOf(value: unknown, name = ''): { kind: string; id: string }[] {
  if (typeof value !== 'object' || value === null) {
    return [];
  }
  const { id } = value as { id?: unknown };
  const own = MEDIA_KINDS.has(name) && typeof id === 'string' ? [{ kind: name, id }] : [];
  return [...own, ...Object.entries(value).flatMap(([member, inner]) => mediaIdsOf(inner, member))];
}

/** True for anything but a body of a send: read receipts and typing indicators have a status. */
export function isReadReceipt(body: unknown): boolean {
  return isObject(body) && body.status === 'read' && typeof body.message_id === 'string';
}

/** Checks a body as the platform does, in its order and with its codes. */
export function readSendRequest(body: unknown): SendRequest | GraphFailure {
  if (!isObject(body) || body.messaging_product !== 'whatsapp') {
    return invalidParameter(100, 'The parameter messaging_product is required.');
  }
  const recipient = recipientOf(body);
  if (recipient === undefined) {
    return invalidParameter(131008, 'Required parameter to is missing');
  }
  const problem = contentProblem(body);
  if (problem !== undefined) {
    return problem;
  }
  const opaque = body.biz_opaque_callback_data;
  if (opaque === undefined) {
    return recipient;
  }
  if (typeof opaque !== 'string' || opaque.length > MAX_OPAQUE_CHARACTERS) {
    return invalidParameter(131009, 'Parameter biz_opaque_callback_data is not valid');
  }
  return { ...recipient, opaqueData: opaque };
}
