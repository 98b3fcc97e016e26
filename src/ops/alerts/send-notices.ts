import { webhookTargets } from '../../features/endpoints/webhook-targets.ts';
import { isSameTarget } from '../../platform/http/same-target.ts';
import { isInTime, leaseClockMs, leaseMsFor } from '../../platform/lease-clock.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { publicAlertId } from '../../platform/public-ids.ts';
import { nextDelayMs } from '../../platform/retry-schedule.ts';
import {
  attemptSigned,
  PROXY_WAIT_MS,
  type SendingTools,
  type SendingVerdict,
} from '../feed/signed-attempt.ts';
import { alertHeaders } from './alert-envelope.ts';
import { type ClaimedNotice, claimNotices, type NoticeOutcome, recordNotice } from './alert-notices.ts';
import { OPERATIONS_SECRET } from './operations-url.ts';

export type NoticeTools = SendingTools & {
  database: Database;
  /** Waits in ms between attempts; after the last one the alert has failed. */
  alertScheduleMs?: readonly number[];
};

/** 5 s, 30 s, 2 min, 10 min, 30 min, 2 h, 6 h: an older alert helps no one. */
const SCHEDULE_MS = [5, 30, 120, 600, 1_800, 7_200, 21_600].map((seconds) => seconds * 1_000);

/** Begins to send the notices that are due, each in its own run; `busy` are the WABAs with runs under way in this process. */
export async function startNotices(
  tools: NoticeTools,
  busy: readonly string[],
): Promise<{ wabaId: string; sent: Promise<void> }[]> {
  const leaseMs = leaseMsFor(tools.timeoutMs);
  const deadlineMs = leaseClockMs() + leaseMs;
  const notices = await claimNotices(tools.database, { leaseMs, busy });
  return notices.map((notice) => ({ wabaId: notice.wabaId, sent: sendNotice(tools, notice, deadlineMs) }));
}

async function sendNotice(tools: NoticeTools, notice: ClaimedNotice, deadlineMs: number): Promise<void> {
  // A process that was frozen must not send what another one sends by now.
  if (!isInTime(deadlineMs, tools.timeoutMs)) return;
  await recordNotice(tools.database, notice.uuid, await attempt(tools, notice));
}

/**
 * Where it goes is decided now: the URL may have been changed or removed since, or have become one that receives webhooks,
 * to which alerts never go.
 */
async function attempt(tools: NoticeTools, notice: ClaimedNotice): Promise<NoticeOutcome> {
  const { wabaId, operationsUrl: url, secretSealed, endpointUrls } = notice;
  if (url === null || secretSealed === null) return unsent('the WABA has no operations URL any more');
  if (endpointUrls.some((known) => isSameTarget(known, url)))
    return unsent('the operations URL is now the URL of a webhook endpoint');
  const id = publicAlertId(notice.uuid);
  const verdict = await attemptSigned(tools, {
    url,
    id,
    body: notice.body,
    sealed: [secretSealed],
    place: OPERATIONS_SECRET.place(wabaId),
    targets: await webhookTargets(tools.database, wabaId),
    headers: (signed) => alertHeaders({ alertId: id, alert: notice.alert, ...signed }),
  });
  return outcomeOf(verdict, notice.attempts + 1, tools.alertScheduleMs ?? SCHEDULE_MS);
}

const unsent = (error: string): NoticeOutcome => ({ state: 'given_up', attempted: false, error });

/** 410 says that the receiver is gone, which no later attempt changes. */
function outcomeOf(
  verdict: SendingVerdict,
  attemptsMade: number,
  schedule: readonly number[],
): NoticeOutcome {
  if (verdict.kind === 'delivered') return { state: 'delivered', attempted: true, error: null };
  const { kind, reason: error } = verdict;
  if (kind === 'ours') return { state: 'waiting', attempted: false, error, delayMs: PROXY_WAIT_MS };
  const retryAfterMs = kind === 'retry' ? verdict.retryAfterMs : null;
  const delayMs =
    kind === 'gone' ? null : nextDelayMs({ schedule, attemptsMade, retryAfterMs, random: Math.random });
  return delayMs === null
    ? { state: 'given_up', attempted: true, error }
    : { state: 'waiting', attempted: true, error, delayMs };
}
