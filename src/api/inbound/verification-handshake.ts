import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { ApiError } from '../errors/api-error.ts';

const MAX_CHALLENGE_CHARS = 1024;

/** GET /upstream/webhook: proves to the upstream platform that this address is meant to receive its webhooks. */
export function verificationHandshake(scope: FastifyInstance, verifyToken: string): void {
  scope.get('/upstream/webhook', (request, reply) => {
    const query = request.query as Readonly<Record<string, unknown>>;
    const mode = textParam(query, 'hub.mode');
    const challenge = textParam(query, 'hub.challenge');
    const token = textParam(query, 'hub.verify_token');
    if (challenge.length > MAX_CHALLENGE_CHARS) {
      throw new ApiError('invalid_parameter', {
        param: 'hub.challenge',
        message: 'The challenge is too long.',
      });
    }
    if (mode !== 'subscribe' || !isSameToken(token, verifyToken)) throw new ApiError('verification_failed');
    return reply.type('text/plain; charset=utf-8').send(challenge);
  });
}

function textParam(query: Readonly<Record<string, unknown>>, param: string): string {
  const value = query[param];
  if (typeof value === 'string' && value !== '') return value;
  throw new ApiError('invalid_parameter', { param, message: 'The parameter must be given once.' });
}

/** Compares hashes, which have one length whatever is sent. An empty token in the settings verifies nobody. */
function isSameToken(given: string, expected: string): boolean {
  const [left, right] = [given, expected].map((token) => createHash('sha256').update(token).digest());
  return expected !== '' && left !== undefined && right !== undefined && timingSafeEqual(left, right);
}
