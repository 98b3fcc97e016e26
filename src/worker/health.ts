import type { RequestListener } from 'node:http';
import { PROCESS_LIMITS } from '../ops/health/limits.ts';
import { healthOf, QUESTIONS } from '../ops/health/questions.ts';
import type { Logger } from '../platform/logger.ts';
import { type Loop, type LoopStatus, startLoop } from '../platform/loop.ts';
import { type LoopName, loopFacts } from '../platform/loops.ts';
import {
  type MetricsServer,
  makeFiguresCache,
  type Scrape,
  startMetricsServer,
} from '../platform/metrics/metrics-server.ts';
import type { DatabaseListener } from '../platform/postgres/connection.ts';
import type { Database } from '../platform/postgres/database.ts';
import { isMissing, type TemporalUpkeep } from '../platform/temporal/worker-connection.ts';
import type { TemporalWorkers } from './temporal-workers.ts';

/** What a worker knows of its parts at a moment; times in milliseconds. */
export type WorkerParts = {
  isStopping: boolean;
  /** Temporal has been reached once and everything runs. */
  hasStarted: boolean;
  loops: ReadonlyMap<LoopName, LoopStatus>;
  listenerDownMs: number;
  /** Whether the database has the schema of this version; null: it could not be asked. */
  hasSchema: boolean | null;
  /** For how long Temporal has not answered; 0: it does. */
  temporalAwayMs: number;
  /** By task queue, for how long its worker has not run; without those that run. */
  deafMs: ReadonlyMap<string, number>;
};

/**
 * `ready`; `degraded`: it delivers, and something is away that another process would miss as well; `unavailable`: it
 * does not do its part. `needsRestart`: for so long that a new process would do better.
 */
export type WorkerHealth = {
  status: 'starting' | 'ready' | 'degraded' | 'unavailable' | 'stopping';
  checks: Readonly<Record<'loops' | 'listener' | 'schema' | 'temporal' | 'pollers', 'ok' | 'failed'>>;
  warnings: readonly string[];
  needsRestart: boolean;
};

export function judgeHealth(parts: WorkerParts): WorkerHealth {
  const { isStopping, hasStarted, hasSchema, listenerDownMs, temporalAwayMs } = parts;
  const isAway = temporalAwayMs > 0;
  const lateMs = [...parts.loops].map(([name, { turnMs }]) => {
    const { needsTemporal = false, turnLimitMs = PROCESS_LIMITS.turnMs } = loopFacts(name);
    return [name, isAway && needsTemporal ? 0 : turnMs - turnLimitMs] as const;
  });
  const stuck = lateMs.filter(([, ms]) => ms > 0);
  const deaf = isAway ? [] : [...parts.deafMs].filter(([, ms]) => ms > PROCESS_LIMITS.unpolledMs);
  const found = {
    temporal: when(isAway, temporalWarning(hasStarted, temporalAwayMs)),
    loops: stuck.map(([name]) => `the loop ${name} has not finished a turn for too long`),
    listener: when(
      listenerDownMs > PROCESS_LIMITS.listenerDownMs,
      `no connection to PostgreSQL has listened for ${seconds(listenerDownMs)}: polls find what is new, later`,
    ),
    schema: when(
      hasSchema === false,
      'the schema of the database is not that of this version: run "heliograph-server migrate"',
    ),
    pollers: deaf.map(([queue, ms]) => `nothing has polled the task queue ${queue} for ${seconds(ms)}`),
  };
  const { temporal: _, ...own } = found;
  const isUnavailable = Object.values(own).flat().length > 0;
  const running = isUnavailable ? 'unavailable' : isAway ? 'degraded' : 'ready';
  const said = Object.entries(found).map(([name, warnings]) => [name, warnings.length > 0 ? 'failed' : 'ok']);
  return {
    status: isStopping ? 'stopping' : hasStarted ? running : 'starting',
    checks: Object.fromEntries(said),
    warnings: Object.values(found).flat(),
    needsRestart: hasStarted && [...stuck, ...deaf].some(([, ms]) => ms > PROCESS_LIMITS.restartMs),
  };
}

function when(isWrong: boolean, warning: string): string[] {
  return isWrong ? [warning] : [];
}

/** The rule of Prometheus and the documents say the same. */
export const WITHOUT_TEMPORAL = 'deliveries and their retries go on, media and sends wait';

function temporalWarning(hasStarted: boolean, awayMs: number): string {
  return hasStarted
    ? `Temporal has not answered for ${seconds(awayMs)}: ${WITHOUT_TEMPORAL}`
    : `Temporal has not been reached since the start: ${WITHOUT_TEMPORAL}`;
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1_000)} s`;
}

const ASK_TEMPORAL_WITHIN_MS = 5_000;

export type HealthWatch = ReturnType<typeof watchHealth>;

export function watchHealth(parts: {
  database: Database;
  logger: Logger;
  loops: readonly Loop[];
  delivery: { status(): LoopStatus };
}) {
  let isStopping = false;
  let listener: Pick<DatabaseListener, 'downMs'> | null = null;
  let workers: Pick<TemporalWorkers, 'deafMs'> | null = null;
  const answers: { awayFromMs: number | null } = { awayFromMs: performance.now() };
  const hasSchema = lookAtSchema(parts.database);
  const temporalAwayMs = () => (answers.awayFromMs === null ? 0 : performance.now() - answers.awayFromMs);
  const loops = () =>
    new Map<LoopName, LoopStatus>([
      ['delivery-loop', parts.delivery.status()],
      ...parts.loops.map((loop) => [loop.name, loop.status()] as const),
    ]);
  const now = (): Omit<WorkerParts, 'hasSchema'> => ({
    isStopping,
    hasStarted: workers !== null,
    loops: loops(),
    listenerDownMs: listener?.downMs() ?? 0,
    temporalAwayMs: temporalAwayMs(),
    deafMs: workers?.deafMs() ?? new Map(),
  });
  return {
    now,
    health: async (): Promise<WorkerHealth> => judgeHealth({ ...now(), hasSchema: await hasSchema() }),
    listens: (opened: Pick<DatabaseListener, 'downMs'>) => {
      listener = opened;
    },
    /** Everything runs; from now on Temporal is asked whether it is still there. */
    started: (temporal: TemporalParts & { workers: Pick<TemporalWorkers, 'deafMs'> }): Loop => {
      workers = temporal.workers;
      answers.awayFromMs = null;
      return watchTemporal(temporal, parts.logger, answers);
    },
    stops: () => {
      isStopping = true;
    },
  };
}

type TemporalParts = { upkeep: TemporalUpkeep };

/** Asks for the namespace, which is made again when it is gone: pollers without one end after a minute. */
function watchTemporal(
  { upkeep }: TemporalParts,
  logger: Logger,
  answers: { awayFromMs: number | null },
): Loop {
  return startLoop({
    name: 'temporal-watch',
    logger,
    turn: async () => {
      try {
        await upkeep.look(ASK_TEMPORAL_WITHIN_MS);
      } catch (error) {
        answers.awayFromMs ??= performance.now();
        if (isMissing(error)) await upkeep.ensure();
        throw error;
      }
      answers.awayFromMs = null;
      return false;
    },
  });
}

function lookAtSchema(database: Database): () => Promise<boolean | null> {
  const read = async () => healthOf('schema', await QUESTIONS.schema.ask({ database })) === 'up';
  return makeFiguresCache({ read, now: () => performance.now(), waitMs: SCHEMA_WITHIN_MS });
}

/** Probes wait for seconds only. */
const SCHEMA_WITHIN_MS = 1_500;

/**
 * Serves /readyz with 200 while the worker is ready or degraded, else 503, and what is wrong in words; /healthz with 503
 * only where a restart helps; /metrics with a scrape. A port of -1 starts nothing.
 */
export async function startHealthServer(options: {
  host: string;
  port: number;
  health: () => Promise<WorkerHealth>;
  makeScrape: () => Scrape;
}): Promise<MetricsServer> {
  const others: RequestListener = (request, response) => {
    const answer = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
      response.end(`${JSON.stringify(body)}\n`);
    };
    if (request.url === '/readyz')
      void options.health().then(({ needsRestart: _, ...said }) => {
        answer(said.status === 'ready' || said.status === 'degraded' ? 200 : 503, said);
      });
    else if (request.url === '/healthz')
      void options.health().then(({ needsRestart, warnings }) => {
        answer(needsRestart ? 503 : 200, needsRestart ? { status: 'stuck', warnings } : { status: 'ok' });
      });
    else answer(404, { status: 'not found' });
  };
  return await startMetricsServer({ setting: 'HELIOGRAPH_WORKER_HEALTH_PORT', ...options, others });
}
