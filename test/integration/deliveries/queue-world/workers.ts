import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { attemptDelivery } from '../../../../src/deliveries/attempt/attempt-delivery.ts';
import { openEndpoint, sendDelivery } from '../../../../src/deliveries/attempt/send-delivery.ts';
import { type MadeAttempt, settleAttempts } from '../../../../src/deliveries/attempt/settle-attempts.ts';
import {
  type ClaimedDelivery,
  claimDue,
  claimProbes,
  releaseClaims,
  releaseExpired,
} from '../../../../src/deliveries/queue/claim.ts';
import { leaseDelivery } from '../../../../src/deliveries/queue/lease.ts';
import { dropOrphans } from '../../../../src/deliveries/queue/remove.ts';
import {
  leaveToWorkflow,
  releaseDueRetries,
  retryInLoop,
  stepAside,
} from '../../../../src/deliveries/queue/sweep.ts';
import { loadEndpointSettings } from '../../../../src/endpoints/endpoint-settings.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { dueShares } from '../../../support/due-shares.ts';
import { look, type World } from './world.ts';

const LONG_MS = 60_000;
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
  const { deliveries, orphans } = await claimDue(database, { ...run, shares, limit: 8 });
  const claims = orphans.map(({ deliveryId }) => ({ deliveryId, token: run.token }));
  if (claims.length > 0) await dropOrphans(database, claims);
  await carry(world, deliveries, run);
  return deliveries.length;
}

/** Attempts what was claimed, and what follows it. */
export async function carry(world: World, claims: readonly ClaimedDelivery[], run: Run): Promise<void> {
  const made = (await Promise.all(claims.map((claim) => attempt(world, claim, run)))).flat();
  if (made.length === 0 || run.fate === 'dies') return;
  const isLost = run.fate === 'freezes' && (await freeze(world, made, run));
  const next = newRun(world.dice);
  const behind = new Set(claims.map(({ deliveryId }) => deliveryId));
  const { followers, outcomes } = await settleAttempts(
    world.tools,
    made,
    world.dice() < 0.5 ? { ...next, behind } : null,
  );
  if (isLost && outcomes[0] !== null)
    world.violations.push('an attempt was recorded under the claim of another');
  // As after a commit whose answer was lost.
  if (world.dice() < 0.1) {
    const again = await settleAttempts(world.tools, made);
    if (again.outcomes.some((outcome) => outcome !== null))
      world.violations.push('an attempt was recorded twice');
  }
  await carry(world, followers, next);
}

/** Until somebody else has the first of these deliveries, if anybody takes it soon. */
async function freeze({ database }: World, [first]: readonly MadeAttempt[], run: Run): Promise<boolean> {
  if (first === undefined) return false;
  for (let look = 1; look <= 40; look += 1) {
    await sleep(SHORT_MS / 10);
    const rows = await query(
      database,
      `select 1 from delivery_queue where delivery_id = ? and state = 'claimed' and token <> ?`,
      [first.deliveryId, run.token],
    );
    if (rows.length > 0) return true;
  }
  return false;
}

/** None when its claim was given back, or would not have lasted for the request. */
async function attempt(world: World, claim: ClaimedDelivery, run: Run): Promise<MadeAttempt[]> {
  const { database, tools, dice } = world;
  const [settings] = await loadEndpointSettings(database, [claim.endpointId]);
  if (settings === undefined) return [];
  const timeLeftMs = run.startMs + run.leaseMs / 2 - performance.now();
  if (dice() < 0.05 || timeLeftMs < run.leaseMs / 8) {
    if (dice() < 0.5) await releaseClaims(database, run.token, [claim.deliveryId]);
    else await leaveToWorkflow(database, run.token, claim.deliveryId);
    return [];
  }
  const endpoint = openEndpoint(settings, tools);
  const sent = await sendDelivery(tools.sender, endpoint, claim, timeLeftMs);
  return [{ ...claim, token: run.token, endpoint, isProbe: run.isProbe, sent, workflowId: null }];
}

/** What workflows do: each has one delivery, and asks for its lease when it thinks that its time has come. */
export async function workflowTurn(world: World, dies = world.dice() < 0.15): Promise<void> {
  const { database, tools } = world;
  const open = await query<{ deliveryId: string; deliveryDay: string }>(
    database,
    `select delivery_id as "deliveryId", delivery_day as "deliveryDay" from delivery_queue
      where state in ('due', 'retrying', 'claimed') order by random() limit 3`,
  );
  await Promise.all(
    open.map(async (ref) => {
      if (dies) await leaseDelivery(database, { ...ref, token: randomUUID(), leaseMs: SHORT_MS });
      else await attemptDelivery(tools, { ...ref, workflowId: `delivery/${ref.deliveryId}` });
    }),
  );
}

/** What the loops beside the delivery loop do. Failures seem to be an hour old, so that heads step aside. */
export async function sweepTurn(world: World): Promise<void> {
  const { database, dice } = world;
  const everything = { withinSeconds: 3_600, limit: 100 };
  await releaseExpired(database, everything);
  await releaseDueRetries(database, everything);
  const run = { ...newRun(dice), fate: 'works' as const, leaseMs: LONG_MS, isProbe: true };
  const probes = await claimProbes(database, { limit: 5, token: run.token, leaseMs: run.leaseMs });
  await carry(world, probes.deliveries, run);
  if (dice() < 0.5) {
    await execute(
      database,
      `update delivery_queue set first_failed_at = now() - interval '1 hour'
        where state = 'retrying' and attempts > 0 and first_failed_at > now() - interval '1 minute'`,
    );
    await execute(database, `update webhook_endpoints set mode_changed_at = now() - interval '1 day'`);
    await stepAside(database, { defaultSeconds: 60, limit: 2 });
  }
  const retrying = await query<{ id: string }>(
    database,
    `select delivery_id as id from delivery_queue where state = 'retrying' and by_workflow order by random() limit 2`,
  );
  await retryInLoop(
    database,
    retrying.map(({ id }) => id),
  );
  await look(world);
}
