import { isMembers } from '../platform/json/json-members.ts';
import { callApi } from './api-call.ts';

/** Why a key is not served. */
export type KeyRefusal = { status: number; code: string; message: string };

/** A key that was revoked is served here for so long, and can do nothing meanwhile: each tool asks the gateway. */
const KNOWN_FOR_MS = 60_000;
const MAX_KNOWN = 1_000;
const MAX_UNDER_WAY = 8;

const STATUS: Readonly<Record<string, number>> = {
  invalid_api_key: 401,
  expired_api_key: 401,
  ip_not_allowed: 403,
  rate_limit_exceeded: 429,
};

type Known = { refusal: Promise<KeyRefusal | null>; untilMs: number };

/**
 * Asks the gateway whose key a request carries, before anything else is done for it: once per key and minute, and for few
 * keys at a time, so that keys that are made up cost little here and nothing there.
 */
export function makeKeyCheck(url: string, now: () => number = Date.now) {
  const known = new Map<string, Known>();
  let underWay = 0;
  const ask = async (key: string): Promise<KeyRefusal | null> => {
    underWay += 1;
    try {
      return refusalIn(
        await callApi(
          { url, key },
          { method: 'GET', path: '/api/external/key' },
          new AbortController().signal,
        ),
      );
    } finally {
      underWay -= 1;
    }
  };
  return async (key: string): Promise<KeyRefusal | null> => {
    const present = known.get(key);
    if (present !== undefined && present.untilMs > now()) return await present.refusal;
    if (underWay >= MAX_UNDER_WAY) return BUSY;
    const [oldest] = known.keys();
    if (known.size >= MAX_KNOWN && oldest !== undefined) known.delete(oldest);
    const refusal = ask(key);
    known.delete(key);
    known.set(key, { refusal, untilMs: now() + KNOWN_FOR_MS });
    const found = await refusal;
    // A gateway that is away says nothing of the key.
    if (found !== null && found.status >= 429) known.delete(key);
    return found;
  };
}

const BUSY: KeyRefusal = {
  status: 503,
  code: 'busy',
  message: 'Too many keys are being checked. Try again in a few seconds.',
};

function refusalIn({ isError, text }: { isError: boolean; text: string }): KeyRefusal | null {
  if (!isError) return null;
  const { error } = JSON.parse(text) as { error?: unknown };
  const { code, message } = isMembers(error) ? error : {};
  const [name, why] = [String(code), String(message)];
  return { status: STATUS[name] ?? 503, code: name, message: why };
}
