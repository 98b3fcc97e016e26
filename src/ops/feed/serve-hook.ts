import { recordBy, SYSTEM } from '../../platform/audit/audit.ts';
import { USER_AGENT } from '../../platform/http/user-agent.ts';
import { isInTime, leaseClockMs, leaseMsFor } from '../../platform/lease-clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { DEFAULT_RETRY_SCHEDULE_MS, nextDelayMs } from '../../platform/retry-schedule.ts';
import {
  type ClaimedHook,
  type HeldTenant,
  HOOK_SECRET,
  noteFailed,
  noteProgress,
  noteTested,
  releaseHook,
} from './hook-store.ts';
import { hookName } from './hooks.ts';
import { type OperationEvent, readOperationEvents } from './operation-events.ts';
import { attemptSigned, PROXY_WAIT_MS, type SendingTools, type SendingVerdict } from './signed-attempt.ts';

/** Waits after failures; the last one again and again. */
const SCHEDULE_MS = DEFAULT_RETRY_SCHEDULE_MS.slice(0, 5);
/** A hook that accepts nothing for so long is disabled, and its events wait. */
const GIVEN_UP_AFTER_MS = 3 * 86_400_000;
const EVENTS_AT_ONCE = 100;
/** With so many, an event of a further tenant holds the whole hook: it is not the events, and attempts stay few. */
const MOST_HELD = 20;
/** What a tenant has beyond that, such as an alert for each of its endpoints, waits its turn: others' events go on between. */
const MOST_IN_TURN = 10;

type Serving = SendingTools & {
  database: Database;
  logger: Pick<Logger, 'error'>;
  stopping: AbortSignal;
};

/** A hook under its lease, and until when requests may be made for it. */
type Run = { hook: ClaimedHook; leaseMs: number; deadlineMs: number };

/**
 * Sends a hook its test event and what is due: the feed in its order, and, of each tenant whose event was not accepted, what
 * waits, in its own order.
 */
export async function serveHook(tools: Serving, hook: ClaimedHook, claimedAtMs: number): Promise<void> {
  const { database } = tools;
  const { ref, testId, isEnabled, dueInMs } = hook;
  if (testId !== null) {
    const verdict = await attempt(tools, hook, testEvent(testId));
    await noteTested(database, { ref, testId }, verdict.kind === 'delivered' ? null : verdict.reason);
  }
  if (!isEnabled || dueInMs > 0) return await releaseHook(database, hook, dueInMs);
  const leaseMs = leaseMsFor(tools.timeoutMs);
  const run = { hook, leaseMs, deadlineMs: claimedAtMs + leaseMs };
  let next: HeldTenant | undefined;
  do {
    if (!(await sendFeed(tools, run))) break;
    // Who had a turn is behind the others then; what is new in the feed goes before each turn.
    next = hook.held.find(({ dueAt }) => Date.parse(dueAt) <= Date.now());
    if (next !== undefined && !(await sendHeld(tools, run, next))) break;
  } while (next !== undefined && !tools.stopping.aborted);
  // Also where there was no time left, so that no worker waits for the end of the lease; one that was lost is no longer ours to release.
  await releaseHook(database, hook, 0);
}

/** Sends what is behind the place of the hook, but for tenants that are held. False: the lease has ended. */
async function sendFeed(tools: Serving, run: Run): Promise<boolean> {
  const { hook } = run;
  const turns = new Map<number | null, number>();
  for (let hasMore = true; hasMore && !tools.stopping.aborted; ) {
    const page = { types: hook.types, tenantId: null, after: hook.position, limit: EVENTS_AT_ONCE };
    const read = await readOperationEvents(tools.database, page);
    for (const event of read.events) {
      if (tools.stopping.aborted) return true;
      const userId = tenantOf(event);
      if (hook.held.some((held) => held.userId === userId)) continue;
      const turn = (turns.get(userId) ?? 0) + 1;
      turns.set(userId, turn);
      if (turn > MOST_IN_TURN && hook.held.length < MOST_HELD) {
        if (!(await hold(tools, run, event, null))) return false;
        continue;
      }
      const verdict = await attemptInTime(tools, run, event);
      if (verdict === null) return false;
      if (verdict.kind === 'delivered') {
        if (!(await note(tools, run, { position: String(event.sequence) }, 'delivered'))) return false;
        continue;
      }
      const delayMs = delayOfTenant(hook, verdict, 1);
      const failing = hook.held.filter(({ failingSince }) => failingSince !== null);
      if (delayMs === null || failing.length >= MOST_HELD) return await failHook(tools, hook, verdict);
      if (!(await hold(tools, run, event, { delayMs, error: verdict.reason }))) return false;
    }
    if (!(await note(tools, run, { position: read.position }, null))) return false;
    hasMore = read.hasMore;
  }
  return true;
}

/** Lets a tenant wait from an event on, for its turn or because the event failed. False: the lease has ended. */
async function hold(
  tools: Serving,
  run: Run,
  event: OperationEvent,
  failed: { delayMs: number; error: string } | null,
): Promise<boolean> {
  const held: HeldTenant = {
    userId: tenantOf(event),
    position: String(event.sequence - 1),
    failures: failed === null ? 0 : 1,
    failingSince: failed === null ? null : new Date().toISOString(),
    dueAt: dueIn(failed?.delayMs ?? 0),
  };
  const change = { position: String(event.sequence), held: [...run.hook.held, held] };
  return await note(tools, run, change, failed);
}

/** Sends what waits of a tenant, until one is not accepted, its turn is over or it has come up with the hook. False: the lease has ended. */
async function sendHeld(tools: Serving, run: Run, held: HeldTenant): Promise<boolean> {
  const { hook } = run;
  const others = hook.held.filter((other) => other !== held);
  const tenantId = held.userId === null ? null : String(held.userId);
  let present = held;
  const keep = async (change: Partial<HeldTenant>, outcome: Outcome) => {
    present = { ...present, ...change };
    const isUpToDate = BigInt(present.position) >= BigInt(hook.position);
    return await note(tools, run, { held: isUpToDate ? others : [...others, present] }, outcome);
  };
  let sent = 0;
  while (sent < MOST_IN_TURN && BigInt(present.position) < BigInt(hook.position) && !tools.stopping.aborted) {
    const page = { types: hook.types, tenantId, after: present.position, limit: MOST_IN_TURN };
    const read = await readOperationEvents(tools.database, page);
    for (const event of read.events.filter((one) => tenantOf(one) === held.userId)) {
      if (BigInt(event.sequence) > BigInt(hook.position)) break;
      if (tools.stopping.aborted) return true;
      const verdict = await attemptInTime(tools, run, event);
      if (verdict === null) return false;
      if (verdict.kind === 'delivered') {
        sent += 1;
        const change = { position: String(event.sequence), failures: 0, failingSince: null };
        if (!(await keep(change, 'delivered'))) return false;
        continue;
      }
      const failures = present.failures + 1;
      const delayMs = delayOfTenant(hook, verdict, failures);
      if (delayMs === null) return await failHook(tools, hook, verdict);
      const failingSince = present.failingSince ?? new Date().toISOString();
      return await keep({ failures, failingSince, dueAt: dueIn(delayMs) }, { error: verdict.reason });
    }
    if (!(await keep({ position: read.position }, null))) return false;
  }
  return true;
}

const tenantOf = ({ tenant }: OperationEvent) => tenant?.userId ?? null;
const dueIn = (delayMs: number) => new Date(Date.now() + delayMs).toISOString();

type Outcome = Parameters<typeof noteProgress>[2]['outcome'];

async function note(
  { database }: Serving,
  run: Run,
  change: Partial<Pick<ClaimedHook, 'position' | 'held'>>,
  outcome: Outcome,
): Promise<boolean> {
  const { hook, leaseMs } = run;
  Object.assign(hook, change);
  if (outcome === 'delivered') Object.assign(hook, { failures: 0, failingSince: null });
  else if (outcome !== null) hook.failingSince ??= new Date();
  run.deadlineMs = leaseClockMs() + leaseMs;
  return await noteProgress(database, hook, { outcome, leaseMs });
}

/** Null: a process that was frozen must not send what another one sends by now. */
async function attemptInTime(
  tools: Serving,
  { hook, deadlineMs }: Run,
  event: OperationEvent,
): Promise<SendingVerdict | null> {
  return isInTime(deadlineMs, tools.timeoutMs) ? await attempt(tools, hook, event) : null;
}

/** Its place is before all others. */
function testEvent(testId: string): OperationEvent {
  const id = `opn_${testId.replaceAll('-', '')}`;
  const about = { tenant: null, wabaId: null, actor: 'system', data: {} };
  return { id, type: 'hook.test', occurredAt: new Date(), sequence: 0, ...about };
}

async function attempt(
  tools: Serving,
  { ref, url, sealedSecrets: sealed }: ClaimedHook,
  event: OperationEvent,
): Promise<SendingVerdict> {
  const { id } = event;
  return await attemptSigned(tools, {
    url,
    id,
    body: Buffer.from(JSON.stringify(event)),
    sealed,
    place: HOOK_SECRET.place(ref),
    headers: ({ timestampSeconds, signature }) => ({
      'content-type': 'application/json',
      'user-agent': USER_AGENT,
      'webhook-id': id,
      'webhook-timestamp': String(timestampSeconds),
      'webhook-signature': signature,
    }),
  });
}

type Failure = Exclude<SendingVerdict, { kind: 'delivered' }>;

/** Null: not the event is why, and the hook as a whole waits or is disabled. */
function delayOfTenant({ failingSince }: ClaimedHook, verdict: Failure, failures: number): number | null {
  const isOfHook = verdict.kind !== 'retry' || isGivenUp(failingSince);
  return isOfHook ? null : delayAfter(failures, verdict.retryAfterMs);
}

function isGivenUp(failingSince: Date | null): boolean {
  return failingSince !== null && Date.now() - failingSince.getTime() > GIVEN_UP_AFTER_MS;
}

function delayAfter(failures: number, retryAfterMs: number | null): number | null {
  const attemptsMade = Math.min(failures, SCHEDULE_MS.length);
  return nextDelayMs({ schedule: SCHEDULE_MS, attemptsMade, retryAfterMs, random: Math.random });
}

/** The whole hook waits, or is disabled: a fault of ours never disables it. Its lease has ended then. */
async function failHook({ database, logger }: Serving, hook: ClaimedHook, verdict: Failure): Promise<false> {
  const { kind, reason: error } = verdict;
  const isCounted = kind === 'retry' || kind === 'gone';
  const isDisabled = kind === 'gone' || (isCounted && isGivenUp(hook.failingSince));
  const retryMs = kind === 'retry' ? delayAfter(hook.failures + 1, verdict.retryAfterMs) : PROXY_WAIT_MS;
  const delayMs = isDisabled ? null : retryMs;
  const isNoted = await database.transaction(async (trx) => {
    const noted = await noteFailed(trx, hook, { error, delayMs, isCounted });
    if (noted && isDisabled) {
      const change = { action: 'operations_hook.disabled', target: hookName(hook.ref), detail: { error } };
      await recordBy(trx, SYSTEM, { tenantId: null, wabaId: null, ...change });
    }
    return noted;
  });
  if (isNoted && isDisabled)
    logger.error(
      { hook: hook.ref, reason: error },
      'a hook of operation events was disabled; its events wait',
    );
  return false;
}
