import { sendMarker } from '../../../messages/messages.ts';
import { isMembers } from '../../../platform/json/json-members.ts';
import { joined, type Problem } from './problems.ts';
import type { SendRequest } from './send-body.ts';

type Members = Readonly<Record<string, unknown>>;

/** Whom the message goes to and what the request does is said outside: `extra` could make another call of it. */
const RESERVED = new Set([
  ...['messaging_product', 'recipient_type', 'to', 'recipient', 'context', 'biz_opaque_callback_data'],
  ...['recipient_identity_key_hash', 'status', 'message_id', 'typing_indicator'],
]);

/** Why `extra` cannot be merged: it names what is given outside, or what belongs there. */
export function extraProblem(message: Members, extra: Members): Problem | null {
  const reserved = Object.keys(extra).find((name) => RESERVED.has(name));
  if (reserved !== undefined) {
    return { param: joined('extra', reserved), message: 'This member cannot be given in extra.' };
  }
  return collision(message, extra, 'extra');
}

function collision(message: Members, extra: Members, path: string): Problem | null {
  for (const [name, value] of Object.entries(extra)) {
    const own = Object.hasOwn(message, name) ? message[name] : undefined;
    if (own === undefined) continue;
    const at = joined(path, name);
    if (!isMembers(own) || !isMembers(value)) {
      return { param: at, message: 'extra cannot replace a member that is given outside of it.' };
    }
    const deeper = collision(own, value, at);
    if (deeper !== null) return deeper;
  }
  return null;
}

/** The message with the members of `extra`, which must not collide. */
export function mergeExtra(message: Members, extra: Members): Record<string, unknown> {
  const merged: Record<string, unknown> = { ...message };
  for (const [name, value] of Object.entries(extra)) {
    const own = Object.hasOwn(message, name) ? message[name] : undefined;
    merged[name] = isMembers(own) && isMembers(value) ? mergeExtra(own, value) : value;
  }
  return merged;
}

/** The upstream message object of a checked request, without `extra`. */
export function messageOf({ phoneNumberId: _, extra: __, ...message }: SendRequest): Record<string, unknown> {
  return { ...message, messaging_product: 'whatsapp', recipient_type: 'individual' };
}

/** Exactly what upstream gets, as JSON text. Without a mark of the sender's own it carries ours. */
export function upstreamPayload(request: SendRequest, messageId: string): string {
  const { messaging_product, recipient_type, ...rest } = messageOf(request);
  const marked = {
    messaging_product,
    recipient_type,
    ...rest,
    biz_opaque_callback_data: request.biz_opaque_callback_data ?? sendMarker(messageId),
  };
  return JSON.stringify(mergeExtra(marked, request.extra ?? {}));
}
