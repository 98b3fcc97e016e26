import { type Loop, startLoop } from '../../../platform/loop.ts';
import { IDLE_POLL_MS, LOOPS } from '../../../platform/loops.ts';
import { LastStatements } from '../../../platform/postgres/database.ts';
import {
  CHANGE_LAG_SECONDS,
  findSlowWork,
  HAS_CHANGED,
  noteQuietChanges,
} from '../../endpoint/endpoint-changes.ts';
import {
  addEndpointCounts,
  disableEndpoint,
  type EndpointCounts,
  findFailingFor,
  findMostlyFailing,
  noteWorking,
  startProbing,
} from '../../endpoint/endpoint-health.ts';
import { findChangedEndpoints } from '../../endpoint/endpoint-settings.ts';
import { BREAKER, type EndpointHealth, probeDelayMs } from '../breaker.ts';
import type { UpkeepTools } from '../dispatch/queue-upkeep.ts';
import type { EndpointLimiter } from './attempt-limits.ts';

type EndpointKeeperTools = Pick<UpkeepTools, 'database' | 'logger' | 'isLeader' | 'workWatch'> & {
  health: EndpointHealth;
  limiter: EndpointLimiter;
  retryScheduleMs: readonly number[];
  disableAfterHours: number;
  /** Passes on to runs what was attempted, once it is noted of the endpoints. */
  troubleWatch: { attemptedSoFar(): () => void };
};

/** The work that needs no haste, in turns. */
const SLOW_EVERY = 5;

/** In turns, how often it looks for changes of which the watch knows none. */
const IDLE_EVERY = IDLE_POLL_MS / LOOPS['endpoint-keeper'].pollMs;

/**
 * Once a second, and woken by changes of endpoints: stores how this process's attempts went and passes that on to runs, stops endpoints that fail over all
 * processes together, and lets those that are back begin slowly. One process of all disables those that failed for days.
 */
export function startEndpointKeeper(tools: EndpointKeeperTools): Loop {
  let turns = 0;
  const applyChanges = makeChangeLook(tools);
  const storeHealth = makeHealthStore(tools);
  return startLoop({
    name: 'endpoint-keeper',
    logger: tools.logger,
    work: { watch: tools.workWatch, hasWork: HAS_CHANGED, idlePollMs: () => LOOPS['endpoint-keeper'].pollMs },
    turn: async (isIdle) => {
      if (!isIdle || turns % IDLE_EVERY === 0) await applyChanges();
      tools.limiter.forgetUnused();
      await storeHealth();
      if (turns % SLOW_EVERY === 0 && tools.isLeader()) await slowWork(tools);
      turns += 1;
      return false;
    },
  });
}

/** Gives the limiter what tenants changed since the last look, and lets endpoints that are back begin slowly. */
function makeChangeLook({ database, limiter }: EndpointKeeperTools): () => Promise<void> {
  let lookedMs = performance.now();
  let restarted = new Map<string, number>();
  return async () => {
    const startMs = performance.now();
    const changed = await findChangedEndpoints(database, (startMs - lookedMs) / 1_000 + CHANGE_LAG_SECONDS);
    lookedMs = startMs;
    for (const { id, ...limits } of changed) limiter.allow(id, limits);
    const before = restarted;
    restarted = new Map(
      changed.flatMap(({ id, switchedOnMs }) => (switchedOnMs === null ? [] : [[id, switchedOnMs]])),
    );
    for (const [id, atMs] of restarted) if (before.get(id) !== atMs) limiter.restart(id);
  };
}

/** Stores how the attempts of this process went since the last time, and passes them on to runs. */
function makeHealthStore({ database, health, retryScheduleMs, troubleWatch }: EndpointKeeperTools) {
  const store = async (counts: readonly EndpointCounts[]) => {
    if (counts.length === 0) return;
    const works = new Map(counts.map(({ endpointId, successes }) => [endpointId, successes > 0]));
    // The commit goes with them: a process that freezes holds the health of no endpoint.
    await database.transaction(
      async (trx) =>
        new LastStatements(Promise.all([addEndpointCounts(trx, counts), noteWorking(trx, works)])),
    );
  };
  return async () => {
    const passOn = troubleWatch.attemptedSoFar();
    const counts = health.drain();
    try {
      await store(counts);
    } finally {
      passOn();
    }
    const failing = counts.filter(({ failures }) => failures > 0).map(({ endpointId }) => endpointId);
    if (failing.length === 0) return;
    for (const { endpointId, failed, deliveries } of await findMostlyFailing(database, failing, BREAKER)) {
      const reason = `most attempts fail: ${failed} of the last ${deliveries}`;
      const probeAfterMs = probeDelayMs(retryScheduleMs, 0, Math.random);
      await database.transaction((trx) => startProbing(trx, endpointId, { probeAfterMs, reason }));
    }
  };
}

async function slowWork({ database, logger, disableAfterHours }: EndpointKeeperTools): Promise<void> {
  const work = await findSlowWork(database, disableAfterHours);
  for (const endpointId of work.disable ? await findFailingFor(database, disableAfterHours) : []) {
    const reason = `every attempt failed for ${disableAfterHours} hours`;
    await database.transaction((trx) => disableEndpoint(trx, endpointId, { version: null, reason }));
    logger.info({ endpointId }, 'an endpoint was disabled: it only failed for days; its events are kept');
  }
  if (work.failing) await noteQuietChanges(database, 'failing');
  if (work.recovered) await noteQuietChanges(database, 'recovered');
}
