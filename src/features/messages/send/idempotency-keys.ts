import { createHash } from 'node:crypto';
import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import { deleteUpTo, execute, query } from '../../../platform/postgres/sql.ts';
import { invalidValue } from '../../../platform/request-input.ts';

export type IdempotencyKey = {
  /** What the key is for: keys of different operations do not meet. */
  operation: string;
  key: string;
  /** SHA-256 of the request's body. */
  fingerprint: Buffer;
};

export type SendResponse = { status: number; body: string };

export type KnownKey = {
  sameRequest: boolean;
  messageId: string;
  response: SendResponse | null;
  /** How long its request may still be under way, in ms; 0: it is not, its process died. */
  heldMs: number;
};

/** Tenants may repeat a request for at least a day. */
const KEPT_HOURS = 48;

export const IDEMPOTENCY_KEY = 'Idempotency-Key';

const PRINTABLE = /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/;

/**
 * The Idempotency-Key of a request, bound to its body; null without one. Throws RequestError `invalid_value` for one that is not 1 to
 * 255 visible ASCII characters.
 */
export function readIdempotencyKey(
  { headers, body }: { headers: NodeJS.Dict<string | string[]>; body: unknown },
  operation: string,
): IdempotencyKey | null {
  const key = headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key !== 'string' || !PRINTABLE.test(key)) {
    throw invalidValue('The header must be 1 to 255 visible ASCII characters.', IDEMPOTENCY_KEY);
  }
  const fingerprint = createHash('sha256').update(JSON.stringify(body)).digest();
  return { operation, key, fingerprint };
}

/** Held for `holdMs`; false when it is taken, also by a transaction that was waited for. */
export async function takeIdempotencyKey(
  trx: Transaction,
  wabaId: string,
  { operation, key, fingerprint }: IdempotencyKey,
  holdMs: number,
): Promise<boolean> {
  const taken = await execute(
    trx,
    `insert into idempotency_keys (waba_id, operation, key, fingerprint, held_until)
     values (:wabaId, :operation, :key, :fingerprint, now() + :holdMs * interval '1 millisecond') on conflict do nothing`,
    { wabaId, operation, key, fingerprint, holdMs },
  );
  return taken === 1;
}

export async function bindIdempotencyKey(
  trx: Transaction,
  wabaId: string,
  { operation, key }: IdempotencyKey,
  messageId: string,
): Promise<void> {
  await execute(
    trx,
    'update idempotency_keys set message_id = :messageId where waba_id = :wabaId and operation = :operation and key = :key',
    { messageId, wabaId, operation, key },
  );
}

export async function findIdempotencyKey(
  database: Database,
  wabaId: string,
  { operation, key, fingerprint }: IdempotencyKey,
): Promise<KnownKey | null> {
  const [row] = await query<{
    fingerprint: Buffer;
    messageId: string;
    status: number | null;
    body: string | null;
    heldMs: number;
  }>(
    database,
    `select fingerprint, message_id as "messageId", response_status as status, response_body as body,
            cast(greatest(extract(epoch from held_until - clock_timestamp()) * 1000, 0) as double precision)
              as "heldMs"
       from idempotency_keys where waba_id = :wabaId and operation = :operation and key = :key`,
    { wabaId, operation, key },
  );
  if (row === undefined) return null;
  const { messageId, status, body, heldMs } = row;
  const response = status === null || body === null ? null : { status, body };
  return { sameRequest: row.fingerprint.equals(fingerprint), messageId, response, heldMs };
}

/** This process responds from now on, unless another one still does. */
export async function holdIdempotencyKey(
  database: Database,
  wabaId: string,
  { operation, key }: IdempotencyKey,
  holdMs: number,
): Promise<boolean> {
  const held = await execute(
    database,
    `update idempotency_keys set held_until = now() + :holdMs * interval '1 millisecond'
      where waba_id = :wabaId and operation = :operation and key = :key and held_until <= (select clock_timestamp()) and response_status is null`,
    { holdMs, wabaId, operation, key },
  );
  return held === 1;
}

/** The first response is kept, for every repetition; returns what is kept, which may be a repetition's. */
export async function saveIdempotentResponse(
  database: Database,
  wabaId: string,
  { operation, key }: IdempotencyKey,
  response: SendResponse,
): Promise<SendResponse> {
  const [kept] = await query<SendResponse>(
    database,
    `update idempotency_keys
        set response_status = coalesce(response_status, :status), response_body = coalesce(response_body, :body)
      where waba_id = :wabaId and operation = :operation and key = :key
     returning response_status as status, response_body as body`,
    { status: response.status, body: response.body, wabaId, operation, key },
  );
  return kept ?? response;
}

/** Deletes up to `limit` keys that are too old to be repeated; returns how many. */
export async function forgetOldIdempotencyKeys(database: Database, limit: number): Promise<number> {
  const which = `created_at < now() - interval '${KEPT_HOURS} hours'`;
  return await deleteUpTo(database, limit, 'idempotency_keys', which);
}
