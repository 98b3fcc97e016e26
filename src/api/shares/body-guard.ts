import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { countedAddress } from '../../platform/http/counted-address.ts';
import { type ApiError, unavailable } from '../errors/api-error.ts';
import { mayTakeMs, tooSlow } from './lowest-rate.ts';
import { createSharedCapacity, type SharedCapacity } from './shared-capacity.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The handler reads the body and sees to it that it comes. */
    readsBody?: boolean;
  }
}

export type BodyLimits = {
  /** Of all bodies that are being read. When they are more, the oldest is cut; no newer one is refused. */
  maxBytes: number;
  /** Whose bodies take more than this are the first to be cut. */
  maxBytesPerAddress: number;
};

/** Of a request that is being read, besides its body. */
const REQUEST_BYTES = 32 * 1024;

const CHECK_EVERY_MS = 500;

type Body = { beganAt: number; sizeBytes: number; cut: (error: ApiError) => void };

/** Watches over the bodies that this scope reads: together they have a limit, and each has a lowest rate. */
export function guardBodies(scope: FastifyInstance, { maxBytes, maxBytesPerAddress }: BodyLimits): void {
  const memory = createSharedCapacity({ capacity: () => maxBytes, ownerShare: maxBytesPerAddress });
  const bodies = new Set<Body>();
  const timer = setInterval(() => cutSlowBodies(bodies), CHECK_EVERY_MS).unref();
  scope.addHook('onClose', async () => clearInterval(timer));
  // Nothing may come between this hook and the parser: from here on the body flows.
  scope.addHook('preParsing', (request, reply, _payload, done) => {
    if (hasBody(request) && request.routeOptions.config.readsBody !== true) {
      watch(request, reply, { memory, bodies });
    }
    done();
  });
}

function hasBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
}

function watch(
  { raw, ip, routeOptions: { bodyLimit } }: FastifyRequest,
  reply: FastifyReply,
  { memory, bodies }: { memory: SharedCapacity; bodies: Set<Body> },
): void {
  const end = (): void => {
    raw.off('data', onData);
    bodies.delete(body);
    held.end();
  };
  const onData = (chunk: Buffer): void => {
    body.sizeBytes += chunk.length;
    // More is not kept by whoever reads it.
    if (body.sizeBytes <= bodyLimit) held.grow(chunk.length);
  };
  const cut = (error: ApiError): void => {
    end();
    // For whoever reads it. Destroying it would end the connection before it has the answer.
    raw.emit('error', error);
  };
  const body: Body = { beganAt: performance.now(), sizeBytes: 0, cut };
  const held = memory.hold(countedAddress(ip), () => cut(noRoom()));
  bodies.add(body);
  // A parser that does not read leaves nobody else to hear of it.
  raw.on('error', () => {});
  raw.on('data', onData).once('end', end);
  reply.raw.once('close', end);
  held.grow(REQUEST_BYTES);
}

function cutSlowBodies(bodies: ReadonlySet<Body>): void {
  const now = performance.now();
  for (const body of bodies) {
    const ageMs = now - body.beganAt;
    // They are in the order in which they began.
    if (ageMs < mayTakeMs(0)) return;
    if (ageMs > mayTakeMs(body.sizeBytes)) body.cut(tooSlow());
  }
}

function noRoom(): ApiError {
  return unavailable(new Error('the memory for bodies was needed for newer ones'));
}
