import { ENDPOINT_HEADERS } from '../../engine/endpoint/endpoint-secrets.ts';
import type { Endpoint } from '../../engine/endpoint/store.ts';
import { type SecretBox, SecretBoxError } from '../../platform/crypto/secret-box.ts';
import { invalidValue, shown } from '../../platform/request-input.ts';
import type { EndpointOptions } from './endpoint-options.ts';

type StoredHeaders = { id: string; customHeadersSealed: string | null };

/**
 * One sealed JSON object; null when none are left. Throws RequestError `invalid_value`, and SecretBoxError when the present ones cannot be
 * opened.
 */
export function changeSealedHeaders(
  secretBox: SecretBox,
  { id, customHeadersSealed }: StoredHeaders,
  change: Readonly<Record<string, string | null>> | null,
): string | null {
  if (change === null) return null;
  const verdict = changeCustomHeaders(open(secretBox, { id, customHeadersSealed }), change);
  if (!verdict.ok) throw invalidValue(verdict.message, 'customHeaders');
  if (Object.keys(verdict.headers).length === 0) return null;
  return secretBox.seal(JSON.stringify(verdict.headers), ENDPOINT_HEADERS.place(id));
}

/** Null when they were sealed with a key that is not there any more. */
export function customHeaderNames(secretBox: SecretBox, endpoint: StoredHeaders): string[] | null {
  try {
    return Object.keys(open(secretBox, endpoint));
  } catch (error) {
    if (error instanceof SecretBoxError) return null;
    throw error;
  }
}

function open(secretBox: SecretBox, { id, customHeadersSealed }: StoredHeaders): Record<string, string> {
  if (customHeadersSealed === null) return {};
  return JSON.parse(secretBox.open(customHeadersSealed, ENDPOINT_HEADERS.place(id)));
}

const MAX_HEADERS = 20;
const MAX_TOTAL_BYTES = 4_096;

/** A token of RFC 9110 §5.6.2. */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** A field value of RFC 9110 §5.5 without the obsolete bytes above ASCII: visible, with spaces or tabs inside only. */
const VALUE = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;

type CustomHeadersVerdict =
  | { ok: true; headers: Record<string, string> }
  /** Safe to show: it never holds a value, which may be a credential. */
  | { ok: false; message: string };

/**
 * Works as a JSON merge patch: a text sets a header, null removes it, what is not named stays. Names are compared without case. All values
 * are checked, also those that stay.
 */
export function changeCustomHeaders(
  present: Readonly<Record<string, string>>,
  change: Readonly<Record<string, string | null>>,
): CustomHeadersVerdict {
  const headers = new Map(
    Object.entries(present).map(([name, value]) => [name.toLowerCase(), { name, value }]),
  );
  const named = new Set<string>();
  for (const [name, value] of Object.entries(change)) {
    const key = name.toLowerCase();
    if (named.has(key)) return refuse(`The header ${shown(name)} is given twice.`);
    named.add(key);
    if (value === null) headers.delete(key);
    else headers.set(key, { name, value });
  }
  return judge([...headers.values()]);
}

function judge(headers: readonly { name: string; value: string }[]): CustomHeadersVerdict {
  for (const { name, value } of headers) {
    if (!NAME.test(name)) return refuse(`${shown(name)} is no header name.`);
    if (isReservedHeader(name)) return refuse(`The header ${shown(name)} is reserved.`);
    if (typeof value !== 'string' || !VALUE.test(value)) {
      return refuse(
        `The value of header ${shown(name)} must be visible ASCII characters, with spaces only inside.`,
      );
    }
  }
  if (headers.length > MAX_HEADERS) {
    return refuse(`An endpoint has at most ${MAX_HEADERS} headers of its own, not ${headers.length}.`);
  }
  const totalBytes = headers.reduce((sum, { name, value }) => sum + name.length + value.length, 0);
  if (totalBytes > MAX_TOTAL_BYTES) {
    return refuse(
      `The headers have ${totalBytes} bytes together, more than the ${MAX_TOTAL_BYTES} that are allowed.`,
    );
  }
  return { ok: true, headers: Object.fromEntries(headers.map(({ name, value }) => [name, value])) };
}

function refuse(message: string): CustomHeadersVerdict {
  return { ok: false, message };
}

const RESERVED_NAMES = new Set(
  `accept-encoding authority connection content-encoding content-length content-type cookie cookie2 date expect
   forwarded host http2-settings idempotency-key keep-alive origin proxy-authenticate proxy-authorization
   proxy-connection referer set-cookie te trailer transfer-encoding upgrade user-agent via`.split(/\s+/),
);
const RESERVED_PREFIXES = ['x-service-', 'x-hub-signature', 'webhook-', 'x-forwarded-', 'sec-', ':'];

/** Reserved are ours, those that say where and how the body is sent, and those that a browser or a proxy would set. Case does not matter. */
export function isReservedHeader(name: string): boolean {
  const lowered = name.trim().toLowerCase();
  return RESERVED_NAMES.has(lowered) || RESERVED_PREFIXES.some((prefix) => lowered.startsWith(prefix));
}

export type EndpointMove = {
  /** Custom headers that were forgotten: their values were meant for the previous server. */
  droppedHeaderNames: string[];
  /** The URL leads to another server, and the one before still knows the signing secret. */
  secretRotationAdvised: boolean;
};

type MovedHeaders = { move: EndpointMove; customHeadersSealed: string | null };

/**
 * Values that are never shown must not leave by a new URL either: when scheme, host or port change, only headers that the same change gives
 * are kept. Throws as `changeSealedHeaders`.
 */
export function headersAfterChange(
  secretBox: SecretBox,
  present: Endpoint,
  { url = present.url, customHeaders }: Pick<EndpointOptions, 'url' | 'customHeaders'>,
): MovedHeaders {
  const isMoved = new URL(url).origin !== new URL(present.url).origin;
  const kept = isMoved ? { id: present.id, customHeadersSealed: null } : present;
  const customHeadersSealed =
    customHeaders === undefined
      ? kept.customHeadersSealed
      : changeSealedHeaders(secretBox, kept, customHeaders);
  const named = new Set(Object.keys(customHeaders ?? {}).map((name) => name.toLowerCase()));
  const isForgotten = (name: string) => customHeaders !== null && !named.has(name.toLowerCase());
  const droppedHeaderNames = isMoved ? (customHeaderNames(secretBox, present) ?? []).filter(isForgotten) : [];
  return { move: { droppedHeaderNames, secretRotationAdvised: isMoved }, customHeadersSealed };
}

/** For the audit log: both hosts, and names of headers, whose values are secret. */
export function moveDetail(
  from: string,
  to: string,
  { droppedHeaderNames, secretRotationAdvised }: EndpointMove,
): Record<string, string> {
  const host = new URL(to).host;
  if (!secretRotationAdvised) return { host };
  const droppedHeaders = droppedHeaderNames.join(', ');
  return { host, previousHost: new URL(from).host, ...(droppedHeaders !== '' && { droppedHeaders }) };
}
