import { Readable } from 'node:stream';
import { request } from 'undici';
import { parseRetryAfter } from '../http/outbound-url.ts';
import {
  firstOf,
  type GraphConnection,
  graphUrl,
  networkReason,
  parseObject,
  readText,
  USER_AGENT,
} from './graph-connection.ts';

/** Upstream answered that it does not take the message. */
export type SendRefusal = {
  kind: 'refused';
  httpStatus: number;
  code: number | null;
  /** Upstream's error object as it came; null when the answer held none. */
  error: Record<string, unknown> | null;
  transient: boolean;
  /** What upstream asked to wait, in ms. */
  retryAfterMs: number | null;
};

/** What came of one attempt to send a message. */
export type SendOutcome =
  | {
      kind: 'accepted';
      upstreamId: string;
      /** `held_for_quality_assessment` and the like; null when upstream says nothing. */
      messageStatus: string | null;
      waId: string | null;
    }
  | SendRefusal
  /** Nothing of it reached upstream: it may be sent again. */
  | { kind: 'not_sent'; reason: string }
  /** It may have reached upstream: sending it again might send it twice. */
  | { kind: 'ambiguous'; reason: string };

type SendCall = { phoneNumberId: string; payloadJson: string; token: string; timeoutMs: number };

/** Longer ids are taken for no id: intake could not match their statuses (domain/upstream/storable-text.ts). */
const MAX_ID_CHARS = 512;

/**
 * Sends one message: `POST /{phone number id}/messages`. Never throws and never repeats anything by itself: the
 * upstream API has no idempotency key, so whoever repeats decides about a second message.
 */
export async function sendMessage(connection: GraphConnection, call: SendCall): Promise<SendOutcome> {
  let written = false;
  const body = Buffer.from(call.payloadJson);
  // Undici asks for the body when it writes the request, after the connection stands: until then nothing went out.
  async function* bodyNoticed() {
    written = true;
    yield body;
  }
  try {
    const answer = await request(graphUrl(connection, [call.phoneNumberId, 'messages']), {
      dispatcher: connection.agent,
      method: 'POST',
      headers: {
        authorization: `Bearer ${call.token}`,
        accept: 'application/json',
        'content-type': 'application/json',
        'content-length': String(body.length),
        'user-agent': USER_AGENT,
      },
      body: Readable.from(bodyNoticed()),
      signal: AbortSignal.timeout(call.timeoutMs),
    });
    const retryAfter = firstOf(answer.headers['retry-after']);
    const text = await readText(answer.body);
    return outcomeOf(answer.statusCode, retryAfter, parseObject(text));
  } catch (error) {
    const reason = networkReason(error);
    return written ? { kind: 'ambiguous', reason } : { kind: 'not_sent', reason };
  }
}

function outcomeOf(
  status: number,
  retryAfter: string | undefined,
  body: Record<string, unknown> | null,
): SendOutcome {
  if (status >= 200 && status <= 299) return acceptanceOf(body);
  const error = objectOf(body?.error);
  const code = typeof error?.code === 'number' && Number.isSafeInteger(error.code) ? error.code : null;
  // A proxy that lost its upstream answers so; upstream itself says in its error what it did.
  if (status >= 500 && code === null) {
    return { kind: 'ambiguous', reason: `it answered ${status} without an error of its own` };
  }
  const transient = status === 429 || error?.is_transient === true;
  const retryAfterMs = parseRetryAfter(retryAfter, Date.now());
  return { kind: 'refused', httpStatus: status, code, error, transient, retryAfterMs };
}

/** Success, if the answer has the id that makes it one. */
function acceptanceOf(body: Record<string, unknown> | null): SendOutcome {
  const [message] = arrayOf(body?.messages);
  const [contact] = arrayOf(body?.contacts);
  const upstreamId = textOf(message?.id);
  if (upstreamId === null || upstreamId.length > MAX_ID_CHARS) {
    return { kind: 'ambiguous', reason: 'its answer names no message id' };
  }
  const messageStatus = textOf(message?.message_status);
  return { kind: 'accepted', upstreamId, messageStatus, waId: textOf(contact?.wa_id) };
}

function objectOf(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}

function arrayOf(value: unknown): (Record<string, unknown> | null)[] {
  return Array.isArray(value) ? value.map(objectOf) : [];
}

/** What a text column can hold. */
function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' && value.isWellFormed() && !value.includes('\0')
    ? value
    : null;
}
