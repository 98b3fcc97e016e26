import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { MadeAttempt } from '../../../src/engine/deliveries/attempt/made-attempt.ts';
import { settleAttempts } from '../../../src/engine/deliveries/attempt/settle-attempts.ts';
import { makeEndpointHealth } from '../../../src/engine/deliveries/breaker.ts';
import { addEndpointCounts, findMostlyFailing } from '../../../src/engine/endpoint/endpoint-health.ts';
import { type ClaimedDelivery, claimProbes } from '../../../src/engine/queue/claim.ts';
import { releaseDueRetries } from '../../../src/engine/queue/sweep.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { DEFAULT_RETRY_SCHEDULE_MS } from '../../../src/platform/retry-schedule.ts';
import type { SendResult } from '../../../src/platform/sender/http-sender.ts';
import { claimAll } from '../../support/due-shares.ts';
import { ACCOUNT, bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { madeAttempt } from '../../unit/deliveries/made-attempts.ts';
import { failure, response } from '../../unit/deliveries/send-results.ts';

const WABA = '900000000000101';
const URL = 'https://tenant.example/hook';
const HOUR_MS = 3_600_000;
const RULE = { minutes: 5, leastFailures: 10, share: 0.7 };

type Answer = (eventId: string) => SendResult;

/** Whatever is asked about a bad event fails. */
const refusing: Answer = (eventId) => response(eventId.includes('BAD') ? 500 : 200);
const down: Answer = () => response(500);

/** One endpoint, attempted by the production functions on a clock of its own. */
async function endpointWorld() {
  const { database } = await seededWorkerDatabase();
  const { id } = await addEndpoint(database, WABA, URL);
  await database.raw(`update endpoint_health set mode_changed_at = now() - interval '1 hour'`);
  let nowMs = 1_790_000_040_000;
  const tools = {
    database,
    health: makeEndpointHealth(() => nowMs),
    worker: 'test',
    onAttempt: () => undefined,
    runLimits: { perEndpoint: 20, overall: 200, mayStart: () => true, takeStart: () => true },
    gate: { isOpen: () => true, check: async () => true },
    onTrouble: () => undefined,
  };
  const attempted: { eventId: string; delayMs: number }[] = [];

  const settle = async (
    claims: readonly ClaimedDelivery[],
    answer: Answer,
    token: string,
    isProbe: boolean,
  ) => {
    for (const claim of claims) {
      const { endpoint, ...attempt } = madeAttempt(answer(claim.eventId));
      const made: MadeAttempt = {
        ...attempt,
        ...claim,
        token,
        isProbe,
        endpoint: { ...endpoint, id, url: URL, wabaId: WABA, retryScheduleMs: DEFAULT_RETRY_SCHEDULE_MS },
      };
      const { outcomes } = await settleAttempts(tools, [made]);
      const [outcome] = outcomes;
      attempted.push({
        eventId: claim.eventId,
        delayMs: outcome?.state === 'retrying' ? outcome.delayMs : 0,
      });
    }
  };
  return {
    database,
    id,
    tools,
    attempted,
    add: async (...names: string[]) => {
      await takeIn(
        database,
        ...names.map((name) => bodyOf(ACCOUNT, [textMessage(`wamid.${name}`, 'hello')])),
      );
    },
    /** Attempts what is due until nothing is, then lets the time of every retry come. */
    deliver: async (answer: Answer) => {
      const { deliveries, token } = await claimAll(database);
      await settle(deliveries, answer, token, false);
      nowMs += Math.max(0, ...attempted.slice(-deliveries.length).map(({ delayMs }) => delayMs));
      await database.raw(`update delivery_queue set next_attempt_at = now() where state = 'retrying'`);
      await releaseDueRetries(database, { withinSeconds: 60, runGraceMs: 0, limit: 100 });
    },
    /** Lets the time of the next probe come; returns which event it was. */
    probe: async (answer: Answer) => {
      await database.raw(`update endpoint_health set next_probe_at = now() where mode = 'probing'`);
      const token = randomUUID();
      const deliveries = await claimProbes(database, { limit: 20, token, leaseMs: 60_000 });
      await settle(deliveries, answer, token, true);
      return deliveries.map(({ eventId }) => eventId.replace('wamid.', ''));
    },
    mode: async () => (await query<{ mode: string }>(database, 'select mode from endpoint_health'))[0]?.mode,
    states: async () =>
      await query<{ state: string; n: number }>(
        database,
        'select state, count(*)::integer as n from deliveries group by 1 order by 1',
      ),
  };
}

const names = (prefix: string, count: number) => Array.from({ length: count }, (_, n) => `${prefix}${n}`);

describe('a few bad events', () => {
  test.each([
    ['are refused', 4, refusing],
    ['hang', 4, (eventId: string) => (eventId.includes('BAD') ? failure('timeout') : response(200))],
  ])(
    'that %s fail by their own schedule; their endpoint stays open for the others',
    async (_, count, answer) => {
      const world = await endpointWorld();
      await world.add(...names('BAD', count));
      for (let attempt = 0; attempt <= DEFAULT_RETRY_SCHEDULE_MS.length; attempt += 1) {
        await world.deliver(answer);
        expect(await world.mode()).toBe('open');
        const counts = world.tools.health.drain();
        await world.database.transaction((trx) => addEndpointCounts(trx, counts));
        if (attempt === 3) expect(await findMostlyFailing(world.database, [world.id], RULE)).toEqual([]);
      }
      await world.add('GOOD');
      await world.deliver(answer);
      expect(await world.states()).toEqual([
        { state: 'delivered', n: 1 },
        { state: 'failed', n: count },
      ]);
    },
  );

  test('that stopped their endpoint do not keep it shut while others wait', async () => {
    const world = await endpointWorld();
    await world.add(...names('BAD', 12));
    await world.deliver(refusing);
    expect(await world.mode()).toBe('probing');
    await world.add('GOOD');
    const probes = [await world.probe(refusing), await world.probe(refusing), await world.probe(refusing)];
    expect(await world.mode(), `probes: ${probes}`).toBe('open');
  });

  test('do not come before the oldest: an endpoint that refuses first attempts only is open after one probe', async () => {
    const world = await endpointWorld();
    await world.add(...names('OLD', 10));
    await world.deliver(down);
    await world.add('BAD');
    expect(await world.probe(refusing)).toEqual(['OLD0']);
    expect(await world.mode()).toBe('open');
  });

  test('among others that failed while their endpoint was down, wherever they wait, are not every probe', async () => {
    const world = await endpointWorld();
    await world.add(...names('BAD', 3), ...names('GOOD', 8), ...names('LATEBAD', 3));
    await world.deliver(down);
    expect(await world.mode()).toBe('probing');
    const before = [];
    for (let n = 0; n < 14; n += 1) before.push(...(await world.probe(down)));
    expect(new Set(before).size).toBe(14);
    const after = [];
    while ((await world.mode()) === 'probing' && after.length < 14)
      after.push(...(await world.probe(refusing)));
    expect(after.length, `probes: ${after}`).toBeLessThan(7);
    expect(await world.mode()).toBe('open');
  });
});

describe('a probe that fails', () => {
  test('puts its delivery back without having used up a retry, and no workflow keeps it', async () => {
    const world = await endpointWorld();
    await world.add(...names('BAD', 10));
    await world.deliver(down);
    const [probed] = await world.probe(down);
    const [row] = await query(
      world.database,
      `select q.state, q.attempts - q.probes as used from delivery_queue q
         join events ev on ev.day = q.event_day and ev.id = q.event_uuid where ev.event_id = :probed`,
      { probed: `wamid.${probed}` },
    );
    expect(row).toEqual({ state: 'due', used: expect.toBeOneOf([0, 1]) });
  });

  test('with Retry-After puts off its own delivery by that, and the next probe not at all', async () => {
    const world = await endpointWorld();
    await world.add(...names('BAD', 10));
    await world.deliver(down);
    const busy = () => response(503, { retryAfterMs: 24 * HOUR_MS });
    const probed = [...(await world.probe(busy))];
    const [endpoint] = await query<{ seconds: number }>(
      world.database,
      'select extract(epoch from next_probe_at - now())::float8 as seconds from endpoint_health',
    );
    expect(endpoint?.seconds).toBeLessThanOrEqual(300);
    const [row] = await query<{ seconds: number }>(
      world.database,
      `select extract(epoch from next_attempt_at - now())::float8 as seconds from delivery_queue q
         join events ev on ev.day = q.event_day and ev.id = q.event_uuid where ev.event_id = :probed`,
      { probed: `wamid.${probed[0]}` },
    );
    expect(row?.seconds).toBeGreaterThan(23.9 * 3_600);
    expect(await world.probe(refusing)).not.toEqual(probed);
  });

  test('comes again at the pace of the schedule, five minutes at most, whichever delivery it is', async () => {
    const world = await endpointWorld();
    await world.add(...names('BAD', 20));
    await world.deliver(down);
    const waits: number[] = [];
    for (let n = 0; n < 6; n += 1) {
      await world.probe(down);
      const [row] = await query<{ seconds: number }>(
        world.database,
        'select extract(epoch from next_probe_at - now())::float8 as seconds from endpoint_health',
      );
      waits.push(row?.seconds ?? Number.NaN);
    }
    for (const [n, seconds] of [5, 30, 120, 300, 300, 300].entries()) {
      expect(waits[n]).toBeGreaterThan(seconds * 0.75);
      expect(waits[n]).toBeLessThanOrEqual(Math.min(300, seconds * 1.2));
    }
  });
});
