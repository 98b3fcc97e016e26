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
import {
  type ClaimedNotice,
  claimNotices,
  type NoticeOutcome,
  type NoticeTarget,
  noticeTargets,
  recordNotices,
} from './alert-notices.ts';
import { OPERATIONS_SECRET } from './operations-url.ts';

export type NoticeTools = SendingTools & {
  database: Database;
  /** Waits in ms between attempts; after the last one the alert has failed. */
  alertScheduleMs?: readonly number[];
};

/** 5 s, 30 s, 2 min, 10 min, 30 min, 2 h, 6 h: an older alert helps no one. */
const SCHEDULE_MS = [5, 30, 120, 600, 1_800, 7_200, 21_600].map((seconds) => seconds * 1_000);

/**
 * Begins to send the notices that are due, those of a WABA in one run; `busy` are the WABAs with runs under way in this process.
 * A WABA costs a share of two statements and one for all outcomes, however many notices it has: hundreds of URLs that hang
 * leave the connections to others.
 */
export async function startNotices(
  tools: NoticeTools,
  busy: readonly string[],
): Promise<{ wabaId: string; sent: Promise<void> }[]> {
  const leaseMs = leaseMsFor(tools.timeoutMs);
  const deadlineMs = leaseClockMs() + leaseMs;
  const notices = Map.groupBy(await claimNotices(tools.database, { leaseMs, busy }), ({ wabaId }) => wabaId);
  if (notices.size === 0) return [];
  const targets = await noticeTargets(tools.database, [...notices.keys()]);
  return targets.map((target) => ({
    wabaId: target.wabaId,
    sent: sendNotices(tools, target, { notices: notices.get(target.wabaId) ?? [], deadlineMs }),
  }));
}

async function sendNotices(
  tools: NoticeTools,
  target: NoticeTarget,
  { notices, deadlineMs }: { notices: readonly ClaimedNotice[]; deadlineMs: number },
): Promise<void> {
  // A process that was frozen must not send what another one sends by now.
  if (!isInTime(deadlineMs, tools.timeoutMs)) return;
  const send = attemptsAt(tools, target);
  const outcomes = notices.map(async (notice) => ({ ...(await send(notice)), uuid: notice.uuid }));
  await recordNotices(tools.database, await Promise.all(outcomes));
}

/**
 * Where it goes is decided now: the URL may have been changed or removed since, or have become one that receives webhooks,
 * to which alerts never go.
 */
function attemptsAt(
  tools: NoticeTools,
  { wabaId, operationsUrl: url, secretSealed, endpointUrls, allow, deny }: NoticeTarget,
): (notice: ClaimedNotice) => Promise<NoticeOutcome> {
  if (url === null || secretSealed === null)
    return async () => unsent('the WABA has no operations URL any more');
  if (endpointUrls.some((known) => isSameTarget(known, url)))
    return async () => unsent('the operations URL is now the URL of a webhook endpoint');
  return async (notice) => {
    const id = publicAlertId(notice.uuid);
    const verdict = await attemptSigned(tools, {
      url,
      id,
      body: notice.body,
      sealed: [secretSealed],
      place: OPERATIONS_SECRET.place(wabaId),
      targets: { allow, deny },
      headers: (signed) => alertHeaders({ alertId: id, alert: notice.alert, ...signed }),
    });
    return outcomeOf(verdict, notice.attempts + 1, tools.alertScheduleMs ?? SCHEDULE_MS);
  };
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
