import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { openEndpoint } from '../../../../src/engine/deliveries/attempt/endpoint-cache.ts';
import { type MadeAttempt, newRecording } from '../../../../src/engine/deliveries/attempt/made-attempt.ts';
import { sendDelivery } from '../../../../src/engine/deliveries/attempt/send-delivery.ts';
import { settleAttempts } from '../../../../src/engine/deliveries/attempt/settle-attempts.ts';
import { releaseBuffers } from '../../../../src/engine/deliveries/dispatch/release-buffers.ts';
import { loadEndpointSettings } from '../../../../src/engine/endpoint/endpoint-settings.ts';
import {
  type ClaimedDelivery,
  claimDue,
  claimProbes,
  releaseClaims,
  releaseExpired,
} from '../../../../src/engine/queue/claim.ts';
import { claimOne } from '../../../../src/engine/queue/claim-one.ts';
import { parkHeads, unparkHeads } from '../../../../src/engine/queue/park.ts';
import { dropOrphan } from '../../../../src/engine/queue/remove.ts';
import { releaseDueRetries, stepAside } from '../../../../src/engine/queue/sweep.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { dueShares } from '../../../support/due-shares.ts';
import { look, type World } from './world.ts';

export const LONG_MS = 60_000;
const SHORT_MS = 40;

/** What becomes of a process that has claims: it settles them, vanishes, or freezes until they are others'. */
type Fate = 'works' | 'dies' | 'freezes';

/** Claims that were asked for at `startMs`. */
export type Run = { token: string; fate: Fate; leaseMs: number; startMs: number; isProbe: boolean };

export function newRun(dice: () => number): Run {
  const luck = dice();
  const fate = luck < 0.75 ? 'works' : luck < 0.85 ? 'dies' : 'freezes';
  const leaseMs = fate === 'works' ? LONG_MS : SHORT_MS;
  return { token: randomUUID(), fate, leaseMs, startMs: performance.now(), isProbe: false };
}

/** What a delivery loop does once. Returns how many it claimed. */
export async function loopTurn(world: World, run = newRun(world.dice)): Promise<number> {
  const { database } = world;
  const shares = await dueShares(database, 5);
  const claims = await claimDue(database, { ...run, shares, limit: 8 });
  await carry(world, claims, run);
  return claims.length;
}

/** Attempts what was claimed, and what follows it. */
export async function carry(world: World, claims: readonly ClaimedDelivery[], run: Run): Promise<void> {
  const made = (await Promise.all(claims.map((claim) => attempt(world, claim, run)))).flat();
  if (made.length === 0 || run.fate === 'dies') return;
  const isLost = run.fate === 'freezes' && (await freeze(world, made, run));
  const next = newRun(world.dice);
  const behind = new Set(claims.map(({ deliveryId }) => deliveryId));
  const { followers, outcomes, locked } = await settleAttempts(
    world.tools,
    made,
    world.dice() < 0.5 ? { ...next, behind } : null,
  );
  if (isLost && outcomes[0] !== null)
    world.violations.push('an attempt was recorded under the claim of another');
  await settleLocked(world, locked);
  // As after a commit whose answer was lost.
  if (world.dice() < 0.1) {
    const again = await settleAttempts(world.tools, made);
    if (again.outcomes.some((outcome) => outcome !== null))
      world.violations.push('an attempt was recorded twice');
  }
  await carry(world, followers, next);
}

/** What others had locked is recorded later, as by the recorder. */
async function settleLocked({ tools }: World, locked: readonly MadeAttempt[]): Promise<void> {
  for (let rest = locked; rest.length > 0; ) {
    await sleep(3);
    rest = (await settleAttempts(tools, rest)).locked;
  }
}

/** Until somebody else has the first of these deliveries, if anybody takes it soon. */
async function freeze({ database }: World, [first]: readonly MadeAttempt[], run: Run): Promise<boolean> {
  if (first === undefined) return false;
  for (let look = 1; look <= 40; look += 1) {
    await sleep(SHORT_MS / 10);
    const rows = await query(
      database,
      `select 1 from delivery_queue where delivery_id = :deliveryId and state = 'claimed' and token <> :token`,
      { deliveryId: first.deliveryId, token: run.token },
    );
    if (rows.length > 0) return true;
  }
  return false;
}

/** None when its claim was given back or its event is gone, or when the claim would not have lasted for the request. */
async function attempt(world: World, claim: ClaimedDelivery, run: Run): Promise<MadeAttempt[]> {
  const { database, tools, dice } = world;
  const { body } = claim;
  if (body === null) await dropOrphan(database, { ...claim, ...run });
  if (body === null) return [];
  const [settings] = await loadEndpointSettings(database, [claim.endpointId]);
  if (settings === undefined) return [];
  const timeLeftMs = run.startMs + run.leaseMs / 2 - performance.now();
  if (dice() < 0.05 || timeLeftMs < run.leaseMs / 8) {
    await releaseClaims(database, run.token, [claim.deliveryId]);
    return [];
  }
  const endpoint = openEndpoint(settings, tools);
  const sent = await sendDelivery(tools.sender, endpoint, { ...claim, body }, timeLeftMs);
  return [
    {
      ...claim,
      token: run.token,
      endpoint,
      isProbe: run.isProbe,
      sent,
      isCalm: false,
      workflowId: null,
      recording: newRecording(),
    },
  ];
}

/** What runs do: each shows one delivery, and asks for its claim when it thinks that its time has come. */
export async function workflowTurn(world: World): Promise<void> {
  const { database, dice } = world;
  const open = await query<{ deliveryId: string; deliveryDay: string }>(
    database,
    `select delivery_id as "deliveryId", delivery_day as "deliveryDay" from delivery_queue
      where state in ('due', 'retrying', 'claimed') order by random() limit 3`,
  );
  await Promise.all(
    open.map(async (ref) => {
      const run = newRun(dice);
      const one = await claimOne(database, { ...ref, ...run });
      if (one.kind === 'claimed') await carry(world, [one.delivery], run);
    }),
  );
}

/** Heads that wait for a retry before others of their lane, without saying so: they could never step aside. */
async function unmarkedBlocks({ database }: World): Promise<string[]> {
  const unmarked = await query<{ id: string }>(
    database,
    `select delivery_id as id from delivery_queue h
      where state = 'retrying' and attempts > 0 and next_attempt_at > clock_timestamp() and blocks is null
        and exists (select 1 from delivery_queue f
                     where f.endpoint_id = h.endpoint_id and f.lane = h.lane and f.state = 'queued')`,
  );
  return unmarked.map(({ id }) => `${id} blocks others, and is not marked`);
}

/** As if the conversations of what waits now had been quiet for long. */
async function letBuffersAge({ database }: World): Promise<void> {
  await execute(
    database,
    `update delivery_queue set created_at = created_at - interval '1 second', next_attempt_at = null
      where position = any (array(
        select position from delivery_queue where state in ('unreleased', 'queued') for update skip locked))`,
  );
}

/** What the loops beside the delivery loop do. Failures seem to be an hour old, so that heads step aside. */
export async function sweepTurn(world: World): Promise<void> {
  const { database, dice } = world;
  const everything = { withinSeconds: 3_600, limit: 100 };
  await releaseExpired(database, everything);
  await releaseDueRetries(database, { ...everything, runGraceMs: dice() < 0.5 ? 0 : 3_000 });
  const run = { ...newRun(dice), fate: 'works' as const, leaseMs: LONG_MS, isProbe: true };
  const probes = await claimProbes(database, { limit: 5, token: run.token, leaseMs: run.leaseMs });
  await carry(world, probes, run);
  world.violations.push(...(await unmarkedBlocks(world)));
  if (dice() < 0.3) await letBuffersAge(world);
  await releaseBuffers(database, 4);
  if (dice() < 0.5) {
    await execute(
      database,
      `update delivery_queue set first_failed_at = now() - interval '1 hour'
        where position = any (array(
          select position from delivery_queue
           where state = 'retrying' and attempts > 0 and first_failed_at > now() - interval '1 minute'
             for update skip locked))`,
    );
    await execute(
      database,
      `update endpoint_health set mode_changed_at = now() - interval '1 day'
        where endpoint_id = any (array(select endpoint_id from endpoint_health order by endpoint_id for no key update))`,
    );
    await stepAside(database, { defaultSeconds: 60, limit: 2 });
  }
  if (dice() < 0.5) {
    const endpointIds = world.endpoints.map(({ id }) => id);
    await parkHeads(database, { endpointIds, closedSeconds: 0, limit: 3 });
  }
  await unparkHeads(database, 3);
  await look(world);
}
