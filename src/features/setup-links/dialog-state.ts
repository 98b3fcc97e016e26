import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/** So long, a customer may take for upstream's dialog. */
const VALID_MS = 3_600_000;

const STATE = /^(?<id>[1-9]\d{0,17})\.(?<atMs>\d{13})\.(?<mac>[\w-]{43})$/;

type Part = { id: string; nonce: string };

/**
 * What goes with the customer through upstream's dialog: a MAC over the link, what the browser has in its cookie, and the time. It can be neither made up
 * nor used in another browser.
 */
export function dialogState(key: Uint8Array, { id, nonce }: Part, atMs = Date.now()): string {
  return `${id}.${atMs}.${macOf(key, { id, nonce, atMs })}`;
}

/** The link of a state that is ours, of this browser and not old; null for all others. */
export function linkOfState(
  key: Uint8Array,
  state: string,
  nonceOf: (id: string) => string | undefined,
  nowMs = Date.now(),
): Part | null {
  const { id, atMs: text, mac } = STATE.exec(state)?.groups ?? {};
  if (id === undefined || text === undefined || mac === undefined) return null;
  const nonce = nonceOf(id);
  if (nonce === undefined || nonce === '') return null;
  const atMs = Number(text);
  const isRight = timingSafeEqual(Buffer.from(mac), Buffer.from(macOf(key, { id, nonce, atMs })));
  return isRight && nowMs >= atMs - VALID_MS && nowMs - atMs <= VALID_MS ? { id, nonce } : null;
}

function macOf(key: Uint8Array, { id, nonce, atMs }: Part & { atMs: number }): string {
  return createHmac('sha256', key).update(`${id}.${atMs}.${nonce}`).digest('base64url');
}

/** As the nonce is stored. */
export function nonceHash(nonce: string): Buffer {
  return createHash('sha256').update(nonce).digest();
}
