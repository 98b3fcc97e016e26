import type { Logger } from './logger.ts';
import { type Loop, startLoop, type WorkWatch } from './loop.ts';
import { ASIDE_POLL_MS, LOOPS, type LoopName } from './loops.ts';
import type { Database } from './postgres/database.ts';
import { queryOnly } from './postgres/sql.ts';

/** SQL: a loop that looks more often than the watch must be awake before its work is due. */
export const SOON = `now() + interval '2 seconds'`;

/** A look may take a tenth of the time: under an old snapshot it walks over what has left the queue. */
const REST_TIMES = 10;

/** What the watch saw counts for so much longer than to its next look. */
const SPARE_MS = 4_000;

type Watched = { loop: Pick<Loop, 'name' | 'wake'>; hasWork: string; isIdle: boolean; wokenMs: number };

type WatchTools = { database: Database; logger: Logger; standsAside: () => boolean };

/**
 * Asks once a second, in one statement for all loops, which of them have something to do: those rest that have nothing. When it gets
 * no answer, they look for themselves.
 */
export function makeWorkWatch(): WorkWatch & { start(tools: WatchTools): Loop } {
  const loops = new Map<LoopName, Watched>();
  return {
    add(loop, hasWork) {
      const watched = { loop, hasWork, isIdle: false, wokenMs: performance.now() };
      loops.set(loop.name, watched);
      return {
        isIdle: () => watched.isIdle,
        woken: () => {
          watched.isIdle = false;
          watched.wokenMs = performance.now();
        },
      };
    },
    start: (tools) => startWatch(loops, tools),
  };
}

function startWatch(
  loops: ReadonlyMap<LoopName, Watched>,
  { database, logger, standsAside }: WatchTools,
): Loop {
  let tookMs = 0;
  let expiry: NodeJS.Timeout | undefined;
  const forget = () => {
    for (const watched of loops.values()) if (watched.isIdle) watched.loop.wake();
  };
  const loop = startLoop({
    name: 'work-watch',
    logger,
    pollMs: () => Math.max(LOOPS['work-watch'].pollMs, REST_TIMES * tookMs),
    standsAside,
    turn: async () => {
      const startMs = performance.now();
      note(loops, await look(database, [...loops.values()]), startMs);
      tookMs = performance.now() - startMs;
      clearTimeout(expiry);
      const restMs = standsAside() ? ASIDE_POLL_MS : LOOPS['work-watch'].pollMs;
      expiry = setTimeout(forget, restMs + SPARE_MS).unref();
      return false;
    },
  });
  return {
    ...loop,
    stop: async () => {
      await loop.stop();
      clearTimeout(expiry);
    },
  };
}

async function look(
  database: Database,
  loops: readonly Watched[],
): Promise<Partial<Record<LoopName, boolean>>> {
  if (loops.length === 0) return {};
  const columns = loops.map(({ loop, hasWork }) => `(${hasWork}) as "${loop.name}"`);
  return await queryOnly(database, `select ${columns.join(', ')}`);
}

/** What came while the watch looked is not in what it saw. */
function note(
  loops: ReadonlyMap<LoopName, Watched>,
  hasWork: Partial<Record<LoopName, boolean>>,
  lookedFromMs: number,
): void {
  for (const [name, watched] of loops) {
    if (hasWork[name] === false) watched.isIdle = watched.wokenMs < lookedFromMs;
    else if (watched.isIdle) watched.loop.wake();
  }
}
