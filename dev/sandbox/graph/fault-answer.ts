import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyReply } from 'fastify';
import type { Fault } from '../fault-register.ts';
import type { UpstreamContext } from '../upstream-context.ts';
import { objectMissing, requestedFailure } from './graph-failure.ts';

const DEFAULT_SLOW_MS = 3000;
const DEFAULT_CHUNK_PAUSE_MS = 5;
const CHUNK = Buffer.alloc(64 * 1024, ' ');

/** Cuts the connection as a failing peer does (RST, no answer). */
function resetConnection(reply: FastifyReply): void {
  reply.hijack();
  reply.raw.socket?.resetAndDestroy();
}

async function* endlessChunks(pauseMs: number, signal: AbortSignal): AsyncGenerator<Buffer> {
  while (!signal.aborted) {
    yield CHUNK;
    await sleep(pauseMs, undefined, { signal });
  }
}

function answerEndlessly(
  reply: FastifyReply,
  contentType: string,
  pauseMs: number,
  signal: AbortSignal,
): void {
  reply.hijack();
  reply.raw.writeHead(200, { 'content-type': contentType });
  const body = Readable.from(endlessChunks(pauseMs, signal));
  reply.raw.once('close', () => body.destroy());
  // The reader is expected to hang up, and stopping the server interrupts the pause.
  body.once('error', () => reply.raw.destroy());
  body.pipe(reply.raw);
}

/** Waits as long as a fault of kind `slow` says, or until the server stops. */
async function waitOut(fault: Fault, signal: AbortSignal): Promise<void> {
  await sleep(fault.delayMs ?? DEFAULT_SLOW_MS, undefined, { signal }).catch(() => undefined);
}

/** Answers as for an object that is gone: 404 for a download, the Graph error for all else. */
function answerGone(reply: FastifyReply, fault: Fault, id: string): void {
  const { status, body } = objectMissing(id);
  reply.code(fault.match === 'media_download' ? 404 : status).send(body);
}

/**
 * Carries out a fault that was taken for this request.
 * @param onReset cuts the connection; the default does so before any answer.
 * @returns true when the exchange is over; false when the endpoint still has to answer, for the kinds
 * that wait or that spoil the answer.
 */
export async function answerFault(
  context: UpstreamContext,
  reply: FastifyReply,
  fault: Fault,
  options: { id: string; onReset?: (reply: FastifyReply) => void },
): Promise<boolean> {
  switch (fault.kind) {
    case 'slow':
      await waitOut(fault, context.signal);
      return false;
    case 'status': {
      const { status, body } = requestedFailure(fault.status ?? 503, fault.code);
      reply.code(status).send(body);
      return true;
    }
    case 'reset':
      (options.onReset ?? resetConnection)(reply);
      return true;
    case 'endless': {
      const contentType = fault.match === 'media_download' ? 'application/octet-stream' : 'application/json';
      answerEndlessly(reply, contentType, fault.delayMs ?? DEFAULT_CHUNK_PAUSE_MS, context.signal);
      return true;
    }
    case 'gone':
      answerGone(reply, fault, options.id);
      return true;
    default:
      return false;
  }
}
