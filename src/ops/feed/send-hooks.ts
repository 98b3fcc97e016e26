import { type AttemptVerdict, judgeAttempt } from '../../engine/deliveries/judge-outcome.ts';
import { signStandard } from '../../engine/endpoint/webhook-signature.ts';
import { recordBy, SYSTEM } from '../../platform/audit/audit.ts';
import { type SecretBox, SecretBoxError } from '../../platform/crypto/secret-box.ts';
import { USER_AGENT } from '../../platform/http/user-agent.ts';
import { isInTime, leaseClockMs, leaseMsFor } from '../../platform/lease-clock.ts';
import type { Logger } from '../../platform/logger.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { DEFAULT_RETRY_SCHEDULE_MS, nextDelayMs } from '../../platform/retry-schedule.ts';
import { type HttpSender, isProxyFailure } from '../../platform/sender/http-sender.ts';
import {
  type ClaimedHook,
  claimHooks,
  noteDelivered,
  noteFailed,
  noteTested,
  releaseHook,
} from './hook-store.ts';
import { hookName } from './hooks.ts';
import { type OperationEvent, readOperationEvents } from './operation-events.ts';
import { hookSecretPlace } from './sealed-columns.ts';

export type HookTools = {
  database: Database;
  sender: HttpSender;
  secretBox: SecretBox;
  logger: Pick<Logger, 'warn' | 'error'>;
  /** Longest time of a whole request, in ms. */
  timeoutMs: number;
  standsAside?: () => boolean;
};

/** Waits after failures; the last one again and again. */
const SCHEDULE_MS = DEFAULT_RETRY_SCHEDULE_MS.slice(0, 5);
/** A hook that accepts nothing for so long is disabled, and its events wait. */
const GIVEN_UP_AFTER_MS = 3 * 86_400_000;
/** A fault of our egress proxy says nothing about the hook. */
const PROXY_WAIT_MS = 30_000;
const EVENTS_AT_ONCE = 100;

/**
 * Sends operation events to the hooks of the operator's program, with PostgreSQL alone: each hook in one worker at a time, in the
 * order of the feed, so that one that hangs holds up no other.
 */
export function startHookSender(tools: HookTools): Loop {
  const underWay = new Set<Promise<void>>();
  const stopping = new AbortController();
  const loop = startLoop({
    name: 'operations-hooks',
    logger: tools.logger as Logger,
    standsAside: tools.standsAside,
    turn: async () => {
      const claimedAtMs = leaseClockMs();
      for (const hook of await claimHooks(tools.database, leaseMsFor(tools.timeoutMs))) {
        const run = serve({ ...tools, stopping: stopping.signal }, hook, claimedAtMs)
          .catch((error) =>
            tools.logger.warn({ err: error, hook: hook.ref }, 'a hook waits for its lease to end'),
          )
          .finally(() => underWay.delete(run));
        underWay.add(run);
      }
      return false;
    },
  });
  return {
    ...loop,
    stop: async () => {
      stopping.abort();
      await loop.stop();
      await Promise.all(underWay);
    },
  };
}

type Serving = HookTools & { stopping: AbortSignal };

async function serve(tools: Serving, hook: ClaimedHook, claimedAtMs: number): Promise<void> {
  const { database } = tools;
  const { ref, testId, isEnabled, dueInMs } = hook;
  if (testId !== null) {
    const verdict = await attempt(tools, hook, testEvent(testId));
    await noteTested(database, { ref, testId }, verdict.kind === 'delivered' ? null : verdict.reason);
  }
  if (!isEnabled || dueInMs > 0) return await releaseHook(database, hook, dueInMs);
  const leaseMs = leaseMsFor(tools.timeoutMs);
  let { position } = hook;
  let deadlineMs = claimedAtMs + leaseMs;
  const noteUpTo = async (end: string, isAttempt: boolean) => {
    position = end;
    deadlineMs = leaseClockMs() + leaseMs;
    return await noteDelivered(database, hook, { position, isAttempt, leaseMs });
  };
  for (let hasMore = true; hasMore && !tools.stopping.aborted; ) {
    const page = { types: hook.types, tenantId: null, after: position, limit: EVENTS_AT_ONCE };
    const read = await readOperationEvents(database, page);
    for (const event of read.events) {
      if (tools.stopping.aborted) return await releaseHook(database, hook, 0);
      // A process that was frozen must not send what another one sends by now.
      if (!isInTime(deadlineMs, tools.timeoutMs)) return;
      const verdict = await attempt(tools, hook, event);
      if (verdict.kind !== 'delivered') return await noteFailure(tools, hook, verdict);
      hook.failures = 0;
      hook.failingSince = null;
      if (!(await noteUpTo(String(event.sequence), true))) return;
    }
    if (!(await noteUpTo(read.position, false))) return;
    hasMore = read.hasMore;
  }
  await releaseHook(database, hook, 0);
}

type Verdict = AttemptVerdict | { kind: 'ours'; reason: string };

/** Its place is before all others. */
function testEvent(testId: string): OperationEvent {
  const id = `opn_${testId.replaceAll('-', '')}`;
  const about = { tenant: null, wabaId: null, actor: 'system', data: {} };
  return { id, type: 'hook.test', occurredAt: new Date(), sequence: 0, ...about };
}

async function attempt(
  { sender, secretBox, timeoutMs }: HookTools,
  { ref, url, sealedSecrets }: ClaimedHook,
  event: OperationEvent,
): Promise<Verdict> {
  const secrets = openSecrets(secretBox, ref, sealedSecrets);
  if (secrets === null) return { kind: 'ours', reason: UNREADABLE_SECRET };
  const body = Buffer.from(JSON.stringify(event));
  const timestampSeconds = Math.floor(Date.now() / 1_000);
  const headers = {
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
    'webhook-id': event.id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': signStandard({ secrets, id: event.id, timestampSeconds, body }),
  };
  const result = await sender.send({ url, headers, body, timeoutMs });
  const verdict = judgeAttempt(result);
  return isProxyFailure(result) && verdict.kind === 'retry'
    ? { kind: 'ours', reason: verdict.reason }
    : verdict;
}

const UNREADABLE_SECRET = 'the secret of the hook cannot be read (HELIOGRAPH_ENCRYPTION_KEYS)';

/** Null when an encryption key is missing: an operator can put it back while the events wait. */
function openSecrets(secretBox: SecretBox, ref: string, sealed: readonly string[]): string[] | null {
  try {
    return sealed.map((text) => secretBox.open(text, hookSecretPlace(ref)));
  } catch (error) {
    if (error instanceof SecretBoxError) return null;
    throw error;
  }
}

/** A fault of ours never disables a hook. */
async function noteFailure(
  { database, logger }: HookTools,
  hook: ClaimedHook,
  verdict: Exclude<Verdict, { kind: 'delivered' }>,
): Promise<void> {
  const { reason: error } = verdict;
  const isCounted = verdict.kind !== 'ours';
  const delayMs = isCounted ? delayAfter(hook, verdict) : PROXY_WAIT_MS;
  const isNoted = await database.transaction(async (trx) => {
    const noted = await noteFailed(trx, hook, { error, delayMs, isCounted });
    if (noted && delayMs === null) {
      const change = { action: 'operations_hook.disabled', target: hookName(hook.ref), detail: { error } };
      await recordBy(trx, SYSTEM, { tenantId: null, wabaId: null, ...change });
    }
    return noted;
  });
  if (isNoted && delayMs === null)
    logger.error(
      { hook: hook.ref, reason: error },
      'a hook of operation events was disabled; its events wait',
    );
}

/** Null: the hook is disabled. */
function delayAfter(
  { failures, failingSince }: ClaimedHook,
  verdict: Exclude<AttemptVerdict, { kind: 'delivered' }>,
): number | null {
  if (verdict.kind === 'gone') return null;
  if (failingSince !== null && Date.now() - failingSince.getTime() > GIVEN_UP_AFTER_MS) return null;
  const attemptsMade = Math.min(failures + 1, SCHEDULE_MS.length);
  const { retryAfterMs } = verdict;
  return nextDelayMs({ schedule: SCHEDULE_MS, attemptsMade, retryAfterMs, random: Math.random });
}
