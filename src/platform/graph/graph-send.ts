import { Readable } from 'node:stream';
import { request } from 'undici';
import { parseRetryAfter } from '../http/retry-after.ts';
import { USER_AGENT } from '../http/user-agent.ts';
import { isMembers } from '../json/json-members.ts';
import { MAX_ID_CHARS } from '../json/storable-text.ts';
import {
  firstOf,
  type GraphConnection,
  graphUrl,
  networkReason,
  parseObject,
  readText,
} from './graph-connection.ts';

/** Upstream answered that it does not take the message. */
export type SendRefusal = {
  kind: 'refused';
  httpStatus: number;
  code: number | null;
  /** Upstream's error object as it came; null when the answer held none. */
  error: Record<string, unknown> | null;
  transient: boolean;
  retryAfterMs: number | null;
};

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

type SendCall = Record<'phoneNumberId' | 'path' | 'payloadJson' | 'token', string> & { timeoutMs: number };

/**
 * Sends one message: `POST /{phone number id}/messages`, or another path of that kind. Never throws and never repeats anything by itself: the
 * upstream API has no idempotency key, so the caller decides whether to risk a second message.
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
    const answer = await request(graphUrl(connection, [call.phoneNumberId, call.path]), {
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
    const text = await readText(answer);
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
  // A proxy that lost its upstream responds like this; upstream itself says in its error what it did.
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
  const upstreamId = storableOf(message?.id);
  // Intake could not match the statuses of a longer id.
  if (upstreamId === null || upstreamId.length > MAX_ID_CHARS) {
    return { kind: 'ambiguous', reason: 'its answer names no message id' };
  }
  const messageStatus = storableOf(message?.message_status);
  return { kind: 'accepted', upstreamId, messageStatus, waId: storableOf(contact?.wa_id) };
}

function objectOf(value: unknown): Record<string, unknown> | null {
  return isMembers(value) ? value : null;
}

function arrayOf(value: unknown): (Record<string, unknown> | null)[] {
  return Array.isArray(value) ? value.map(objectOf) : [];
}

function storableOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' && value.isWellFormed() && !value.includes('\0')
    ? value
    : null;
}
