import { type AttemptVerdict, judgeAttempt } from '../../engine/deliveries/judge-outcome.ts';
import { signStandard } from '../../engine/endpoint/webhook-signature.ts';
import { webhookTargets } from '../../features/endpoints/webhook-targets.ts';
import { type SecretBox, SecretBoxError } from '../../platform/crypto/secret-box.ts';
import { isSameTarget } from '../../platform/http/same-target.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { publicAlertId } from '../../platform/public-ids.ts';
import { nextDelayMs } from '../../platform/retry-schedule.ts';
import { type HttpSender, isProxyFailure } from '../../platform/sender/http-sender.ts';
import type { SendingAttempt } from '../../platform/temporal/activity-kit.ts';
import { alertHeaders } from './alert-envelope.ts';
import { type AlertToSend, findAlertToSend, recordAlert } from './alert-notices.ts';
import { operationsSecretPlace } from './sealed-columns.ts';

export type AlertActivityTools = {
  database: Database;
  sender: HttpSender;
  secretBox: SecretBox;
  /** Longest time of a whole request, in ms. */
  timeoutMs: number;
  /** Waits in ms between attempts; after the last one the alert has failed. */
  alertScheduleMs?: readonly number[];
};

export type SendEndpointAlertInput = { wabaId: string; alertId: string };

type Tools = Omit<AlertActivityTools, 'alertScheduleMs'>;

/**
 * Sends an alert once and records what came of it. Where it goes is decided now: the URL may have been changed or
 * removed since, or have become one that receives webhooks, to which alerts never go.
 */
export async function attemptAlert(
  tools: Tools,
  schedule: readonly number[],
  input: SendEndpointAlertInput,
): Promise<SendingAttempt> {
  const alert = await findAlertToSend(tools.database, input.wabaId, input.alertId);
  if (alert === null) return { state: 'failed', summary: 'There is no such alert.' };
  if (alert.isSettled) return { state: 'sent', summary: 'It was settled before.' };
  const target = targetOf(alert);
  if (!target.ok) return await giveUp(tools, input, target.reason, false);
  const verdict = await send(tools, input, alert, target);
  if (verdict.kind === 'ours') {
    await recordAlert(tools.database, input, { state: 'waiting', attempted: false, error: verdict.reason });
    return { state: 'waiting', summary: `${verdict.reason}.`, delayMs: PROXY_WAIT_MS };
  }
  if (verdict.kind === 'delivered') {
    await recordAlert(tools.database, input, { state: 'delivered', attempted: true, error: null });
    return {
      state: 'sent',
      summary: `Delivered with ${verdict.statusCode} at attempt ${alert.attempts + 1}.`,
    };
  }
  const delayMs = delayAfter(verdict, alert.attempts + 1, schedule);
  if (delayMs === null) return await giveUp(tools, input, verdict.reason, true);
  await recordAlert(tools.database, input, { state: 'waiting', attempted: true, error: verdict.reason });
  return { state: 'waiting', summary: `Attempt ${alert.attempts + 1}: ${verdict.reason}.`, delayMs };
}

type Target = { ok: true; url: string; secretSealed: string } | { ok: false; reason: string };

function targetOf({ operationsUrl, secretSealed, endpointUrls }: AlertToSend): Target {
  if (operationsUrl === null || secretSealed === null) {
    return { ok: false, reason: 'the WABA has no operations URL any more' };
  }
  if (endpointUrls.some((url) => isSameTarget(url, operationsUrl))) {
    return { ok: false, reason: 'the operations URL is now the URL of a webhook endpoint' };
  }
  return { ok: true, url: operationsUrl, secretSealed };
}

async function send(
  { database, sender, secretBox, timeoutMs }: Tools,
  input: SendEndpointAlertInput,
  { alert, body }: AlertToSend,
  target: { url: string; secretSealed: string },
): Promise<AttemptVerdict | { kind: 'ours'; reason: string }> {
  const timestampSeconds = Math.floor(Date.now() / 1_000);
  const alertId = publicAlertId(input.alertId);
  const secret = opened(() => secretBox.open(target.secretSealed, operationsSecretPlace(input.wabaId)));
  if (secret === null) return { kind: 'retry', reason: UNREADABLE_SECRET, retryAfterMs: null };
  const secrets = [secret];
  const signature = signStandard({ secrets, id: alertId, timestampSeconds, body });
  const targets = await webhookTargets(database, input.wabaId);
  const headers = alertHeaders({ alertId, alert, timestampSeconds, signature });
  const result = await sender.send({ url: target.url, headers, body, timeoutMs, targets });
  const verdict = judgeAttempt(result);
  return isProxyFailure(result) && verdict.kind === 'retry'
    ? { kind: 'ours', reason: verdict.reason }
    : verdict;
}

/** A fault of our egress proxy uses up no attempt. */
const PROXY_WAIT_MS = 30_000;

const UNREADABLE_SECRET = 'the secret of the operations URL cannot be read (HELIOGRAPH_ENCRYPTION_KEYS)';

/** Null when the key of a sealed text is missing: an operator can put it back while the alert waits. */
function opened(open: () => string): string | null {
  try {
    return open();
  } catch (error) {
    if (error instanceof SecretBoxError) return null;
    throw error;
  }
}

/** 410 says that the receiver is gone, which no later attempt changes. */
function delayAfter(
  verdict: Exclude<AttemptVerdict, { kind: 'delivered' }>,
  attemptsMade: number,
  schedule: readonly number[],
): number | null {
  if (verdict.kind === 'gone') return null;
  return nextDelayMs({ schedule, attemptsMade, retryAfterMs: verdict.retryAfterMs, random: Math.random });
}

async function giveUp(
  { database }: Tools,
  input: SendEndpointAlertInput,
  reason: string,
  attempted: boolean,
): Promise<SendingAttempt> {
  await recordAlert(database, input, { state: 'given_up', attempted, error: reason });
  return { state: 'failed', summary: `Given up: ${reason}.` };
}
