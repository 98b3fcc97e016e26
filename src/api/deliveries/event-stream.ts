import { AsyncLocalStorage } from 'node:async_hooks';
import { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { type ListedEvent, listEvents, readEventBodies } from '../../features/delivery-log/events.ts';
import { hashApiKey } from '../../features/keys/api-key.ts';
import { type EventType, eventTypeNamed } from '../../platform/event-type.ts';
import { lowestUuidAt } from '../../platform/public-ids.ts';
import { invalidValue } from '../../platform/request-input.ts';
import { positionOf } from '../external/page.ts';
import { closed, optionalParameter } from '../external/schema-kit.ts';
import { accountOf } from '../keys/api-key-auth.ts';
import type { ApiCall } from '../operations/operation.ts';
import { restOperation } from '../operations/operation.ts';
import { goneSignal } from '../shares/download-shares.ts';
import type { EndReason } from './event-stream-places.ts';
import type { EventWatch } from './event-watch.ts';
import { eventJson } from './events.ts';

const HEARTBEAT_MS = 15_000;
const PAGE = 100;
/** Bodies that a stream holds at a time, unless a single one is larger. */
const MAX_HELD_BYTES = 256 * 1024;
/** Afterwards the client connects again, so that streams move to processes that started later. */
const MAX_AGE_MS = 3_600_000;
const RETRY_MS = 1_000;
const RETRY_AFTER_FAILURE_MS = 5_000;
/** A handler that takes longer is stuck; the stream has ended by then. */
const HANDLER_TIMEOUT_MS = MAX_AGE_MS + 120_000;

const StreamQuery = closed({
  types: optionalParameter(
    Type.String({ maxLength: 1_024 }),
    'Events of these types only, separated by commas; `upstream.*`: events of all upstream fields. Without it, the stream has the six only.',
    'message,status',
  ),
  cursor: optionalParameter(
    Type.String(),
    'The `id` of the last block that was read: the stream continues behind it. The header `Last-Event-ID` does the same and comes first.',
    'AAABlq3kZ0B2',
  ),
});

const Blocks = Type.String({
  examples: [
    'id: AAABlq3kZ0B2\ndata: {"id":"evt_019aa2b37c4d7e8f9a0b1c2d3e4f5061","eventType":"message"}\n\n',
  ],
});

export const streamEvents = restOperation({
  id: 'streamEvents',
  method: 'GET',
  path: '/api/external/events/stream',
  scope: 'readEvents',
  summary: 'Stream events',
  description:
    'Live events as server-sent events, without gaps, about two seconds behind. `data` is an event as in the list, without `deliverySummary`, in one line; `id` is the cursor to resume from. Every 15 seconds a comment comes, with an `id`. Before the service ends a stream, a block with `event: end` says why. A key has 5 streams at a time.',
  tag: 'Events',
  errors: ['too_many_streams', 'invalid_cursor'],
  query: StreamQuery,
  answers: { 200: { description: 'The stream.', schema: Blocks, type: 'text/event-stream' } },
  route: { handlerTimeout: HANDLER_TIMEOUT_MS },
  run: async (call, { types, cursor }) => {
    const { reply, request } = call;
    const eventTypes = typesOf(types);
    const afterId = positionOf(call.cursors, scopeOf(call), cursorOf(request) ?? cursor)?.[0] ?? null;
    // A connection that has carried a stream is not used again, or it would hold up a server that stops.
    reply
      .type('text/event-stream; charset=utf-8')
      .headers({ 'x-accel-buffering': 'no', connection: 'close' });
    // The schema describes the blocks as text.
    const answer = request.method === 'HEAD' ? '' : openStream(call, { eventTypes, afterId });
    return reply.send(answer) as never;
  },
});

const scopeOf = ({ wabaId }: ApiCall) => [wabaId, 'event stream'];

function cursorOf({ headers }: FastifyRequest): string | undefined {
  const given = headers['last-event-id'];
  return typeof given === 'string' && given !== '' ? given : undefined;
}

function typesOf(list: string | undefined): readonly EventType[] | null {
  if (list === undefined) return null;
  return list.split(',').map((name) => {
    const type = eventTypeNamed(name.trim());
    if (type !== null) return type;
    throw invalidValue(`There is no event type ${JSON.stringify(name.trim().slice(0, 80))}.`, 'types');
  });
}

type Wanted = { eventTypes: readonly EventType[] | null; afterId: string | null };

/** Throws ApiError 429 and 503. */
function openStream(call: ApiCall, wanted: Wanted): Readable {
  const { account, request, reply, eventStreams } = call;
  const ending = new AbortController();
  const state = { reason: null as EndReason | null, blockedSinceMs: null as number | null };
  const end = (reason: EndReason): void => {
    state.reason ??= reason;
    ending.abort();
  };
  const free = eventStreams.places.take({
    keyId: account.keyId,
    tenantId: account.tenantId,
    ip: request.ip,
    keyHash: hashApiKey(tokenOf(request)),
    end,
    cut: () => cut(),
    blockedSinceMs: () => state.blockedSinceMs,
  });
  const watch = eventStreams.watches.join(call.database, accountOf(request).wabaId);
  const oldest = setTimeout(() => end('max_age'), MAX_AGE_MS).unref();
  const blocks = blocksOf(call, watch, { ...wanted, ending: ending.signal, reason: () => state.reason });
  const complete = withFailure(blocks, (error) =>
    request.log.warn({ err: error }, 'a stream of events failed'),
  );
  const stream = Readable.from(noteWaits(complete, state), { highWaterMark: 1 });
  const close = (): void => {
    clearTimeout(oldest);
    ending.abort();
    watch.leave();
    free();
  };
  stream.once('close', close);
  const cut = (): void => {
    // The stream closes once its wait has ended.
    ending.abort();
    stream.destroy();
  };
  goneSignal(reply).addEventListener('abort', cut, { once: true });
  return stream;
}

function tokenOf({ headers }: FastifyRequest): string {
  return (headers.authorization ?? '').replace(/^Bearer +/i, '').trim();
}

/** Ends the blocks in order when one cannot be read: the client comes again with its cursor. */
async function* withFailure(blocks: AsyncGenerator<string>, note: (error: unknown) => void) {
  try {
    yield* blocks;
  } catch (error) {
    note(error);
    yield endBlock('service_unavailable', RETRY_AFTER_FAILURE_MS);
  }
}

function endBlock(reason: EndReason, retryMs: number): string {
  return `retry: ${retryMs}\nevent: end\ndata: ${JSON.stringify({ reason })}\n\n`;
}

async function* noteWaits(blocks: AsyncGenerator<string>, state: { blockedSinceMs: number | null }) {
  for await (const block of blocks) {
    state.blockedSinceMs = performance.now();
    yield block;
    state.blockedSinceMs = null;
  }
}

type Course = Wanted & { ending: AbortSignal; reason: () => EndReason | null };

async function* blocksOf(call: ApiCall, watch: EventWatch, course: Course): AsyncGenerator<string> {
  // A stream is read from other contexts, but its statements count for its tenant.
  const asTenant = AsyncLocalStorage.snapshot();
  const cursorAt = (id: string) => call.cursors?.encode(scopeOf(call), [id]) ?? '';
  let horizonMs = await watch.horizonMs();
  let position = course.afterId ?? lowestUuidAt(horizonMs);
  yield `retry: ${RETRY_MS}\nid: ${cursorAt(position)}\n: the stream begins\n\n`;
  for (let hasMore = false, isQuiet = false; ; ) {
    horizonMs = await asTenant(() => watch.horizonMs());
    const page = await asTenant(() => pageOf(call, course, { position, horizonMs }));
    for (const events of inParts(page.events)) {
      const bodies = await asTenant(() => readEventBodies(call.database, call.wabaId, events));
      for (const event of events) {
        if (course.ending.aborted) break;
        yield `id: ${cursorAt(event.id)}\ndata: ${eventJson(event, bodies.get(event.id), {})}\n\n`;
      }
    }
    const reason = course.reason();
    if (reason !== null) yield endBlock(reason, RETRY_MS);
    if (course.ending.aborted) return;
    hasMore = page.hasMore;
    position = laterOf(position, hasMore ? (page.position ?? position) : lowestUuidAt(horizonMs));
    if (isQuiet && page.events.length === 0) yield `id: ${cursorAt(position)}\n: heartbeat\n\n`;
    if (hasMore) continue;
    const sinceMs = performance.now();
    await watch.changed(horizonMs, HEARTBEAT_MS, course.ending);
    isQuiet = performance.now() - sinceMs >= HEARTBEAT_MS - 1;
  }
}

function laterOf(one: string, other: string): string {
  return one > other ? one : other;
}

async function pageOf(
  { database, wabaId }: ApiCall,
  { eventTypes }: Wanted,
  { position, horizonMs }: { position: string; horizonMs: number },
) {
  const filter = { eventTypes, eventId: null, phoneNumberId: null, deliveryState: null, sinceMs: null };
  const walk = { order: 'asc', afterId: position, limit: PAGE } as const;
  return await listEvents(database, wabaId, { ...filter, untilMs: horizonMs }, walk);
}

function* inParts(events: readonly ListedEvent[]): Generator<ListedEvent[]> {
  let part: ListedEvent[] = [];
  let sizeBytes = 0;
  for (const event of events) {
    if (part.length > 0 && sizeBytes + event.sizeBytes > MAX_HELD_BYTES) {
      yield part;
      [part, sizeBytes] = [[], 0];
    }
    part.push(event);
    sizeBytes += event.sizeBytes;
  }
  if (part.length > 0) yield part;
}
