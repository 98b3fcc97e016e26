import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { unavailable } from '../errors/api-error.ts';

/** Of whose parts of the downloads a download takes a place. */
export type DownloadOwners = { file: string; address: string; tenant: string };

export type DownloadLimits = {
  perFile: number;
  perAddress: number;
  perTenant: number;
  total: number;
  /** For how long a client may read below the lowest rate. */
  graceMs: number;
  minBytesPerSecond: number;
  maxWaitMs: number;
  checkEveryMs: number;
};

const RATE = { graceMs: 10_000, minBytesPerSecond: 32 * 1024, checkEveryMs: 500 };

/** Each place is a connection to the object store, of which a process has 64 for received files. */
export const FILE_LIMITS: DownloadLimits = {
  ...RATE,
  perFile: 8,
  perAddress: 16,
  perTenant: 24,
  total: 64,
  maxWaitMs: 20_000,
};

/** An export reads all that is stored of a WABA's payments, so a WABA, as the file, has one at a time. */
export const EXPORT_LIMITS: DownloadLimits = {
  ...RATE,
  perFile: 1,
  perAddress: 8,
  perTenant: 4,
  total: 16,
  maxWaitMs: 10_000,
};

export type DownloadShares = {
  /**
   * Opens a download once its owners have a place for it; the place is free again when the stream has closed. Throws
   * ApiError 503 when that takes too long, the reason of `gone` when the client has left, and what `start` throws.
   */
  open(owners: DownloadOwners, gone: AbortSignal, start: () => Promise<Readable>): Promise<Readable>;
};

type Place = { owners: DownloadOwners; reader: MeteredReader | null; passedBytes: number; leftMs: number };

type Waiting = { owners: DownloadOwners; admit: (place: Place) => void };

/** The places of the first group of these owners that may have no more; null: there is room. */
function fullGroup(all: Place[], owners: DownloadOwners, limits: DownloadLimits): Place[] | null {
  const groupOf = (kind: keyof DownloadOwners) => all.filter((place) => place.owners[kind] === owners[kind]);
  const groups: [Place[], number][] = [
    [groupOf('file'), limits.perFile],
    [groupOf('address'), limits.perAddress],
    [groupOf('tenant'), limits.perTenant],
    [all, limits.total],
  ];
  return groups.find(([group, limit]) => group.length >= limit)?.[0] ?? null;
}

/** A download without a place waits in its owners' line; a slow client is cut, at once if its place is waited for. */
export function shareDownloads(scope: FastifyInstance, limits: DownloadLimits): DownloadShares {
  // Both in the order in which they came.
  const places = new Set<Place>();
  const waiting = new Set<Waiting>();

  const full = (owners: DownloadOwners) => fullGroup([...places], owners, limits);
  const add = (owners: DownloadOwners): Place => {
    const place = { owners, reader: null, passedBytes: 0, leftMs: limits.graceMs };
    places.add(place);
    return place;
  };
  const admitWaiting = (): void => {
    for (const next of waiting) {
      if (full(next.owners) !== null) continue;
      waiting.delete(next);
      next.admit(add(next.owners));
    }
  };
  const end = (place: Place): void => {
    if (places.delete(place)) admitWaiting();
  };

  const makeRoom = (): void => {
    for (const { owners } of waiting) {
      const slow = (full(owners) ?? []).filter(({ leftMs }) => leftMs < limits.graceMs);
      slow.sort((a, b) => a.leftMs - b.leftMs)[0]?.reader?.destroy();
    }
  };
  const timer = setInterval(() => {
    for (const place of places) judge(place, limits);
    makeRoom();
  }, limits.checkEveryMs).unref();
  scope.addHook('onClose', async () => clearInterval(timer));

  const placeFor = async (owners: DownloadOwners, gone: AbortSignal): Promise<Place> => {
    gone.throwIfAborted();
    if (full(owners) === null) return add(owners);
    const { promise, resolve } = Promise.withResolvers<Place>();
    const next = { owners, admit: resolve };
    waiting.add(next);
    const late = sleep(limits.maxWaitMs, null, { ref: false, signal: gone });
    const place = await Promise.race([promise, late]).finally(() => waiting.delete(next));
    if (place === null) throw unavailable(new Error('other downloads of the same owners took all places'));
    return place;
  };

  return {
    async open(owners, gone, start) {
      const place = await placeFor(owners, gone);
      try {
        const source = await start();
        const reader = new MeteredReader();
        place.reader = reader;
        // Destroys both when either of them ends early.
        pipeline(source, reader, () => {});
        return reader.once('close', () => end(place));
      } catch (error) {
        end(place);
        throw error;
      }
    },
  };
}

/** Aborted once the client of a request has gone away, or has its whole response. */
export function goneSignal({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  raw.once('close', () => gone.abort());
  if (raw.destroyed) gone.abort();
  return gone.signal;
}

/** Takes the time for which the client held the download up from its grace; what it has read restores time. */
function judge(place: Place, { checkEveryMs, minBytesPerSecond, graceMs }: DownloadLimits): void {
  const { reader } = place;
  if (reader === null) return;
  const earnedMs = ((reader.passedBytes - place.passedBytes) * 1_000) / minBytesPerSecond;
  place.passedBytes = reader.passedBytes;
  const spentMs = reader.waitsForClient() ? checkEveryMs : 0;
  place.leftMs = Math.min(place.leftMs - spentMs + earnedMs, graceMs);
  if (place.leftMs <= 0) reader.destroy();
}

/** Passes bytes on, counts them, and tells who is waited for. */
class MeteredReader extends Transform {
  passedBytes = 0;

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.passedBytes += chunk.length;
    done(null, chunk);
  }

  /** Whether bytes are here that the client has no room for. */
  waitsForClient(): boolean {
    return this.readableLength > 0;
  }
}
