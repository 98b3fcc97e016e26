import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { IdempotencyKey } from '../../../messages/send/idempotency-keys.ts';
import { ApiError } from '../../errors/api-error.ts';

const HEADER = 'Idempotency-Key';
const PRINTABLE = /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/;

/**
 * The Idempotency-Key of a request, bound to its body; null without one. Throws ApiError 400 for one that is not 1 to
 * 255 visible ASCII characters.
 */
export function idempotencyKeyOf(request: FastifyRequest, operation: string): IdempotencyKey | null {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key !== 'string' || !PRINTABLE.test(key)) {
    const message = 'The header must be 1 to 255 visible ASCII characters.';
    throw new ApiError('invalid_parameter', { param: HEADER, message });
  }
  const fingerprint = createHash('sha256').update(JSON.stringify(request.body)).digest();
  return { operation, key, fingerprint };
}
