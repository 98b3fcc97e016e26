import { shownUrl } from '../../platform/http/outbound-url.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import { publicDeliveryId } from '../../platform/public-ids.ts';
import { countWaiting, MAX_SHOWN_WAITING } from '../backlog.ts';
import { sampleTrouble } from '../queue/trouble.ts';
import { type EndpointInTrouble, type EndpointRow, type ReportedFailure, troubleDetails } from './details.ts';

/** What the run of an endpoint shows. `details` are Markdown; `head` is what `skipHead` drops. */
export type TroubleShown = {
  state: EndpointInTrouble['state'];
  details: string;
  tenantId: string;
  wabaId: string;
  head: string | null;
  /** When something changes by itself; null: never. */
  lookAgainMs: number | null;
};

/** What waits for less is on its way. */
const FLOWING_MS = 10_000;

/** Looks at an endpoint; a text says why it is in no trouble. */
export async function lookAtTrouble(
  { database, publicUrl }: { database: Database; publicUrl: string },
  endpointId: string,
  failure: ReportedFailure | null,
): Promise<TroubleShown | string> {
  const [row] = await query<EndpointRow>(database, ROW, [endpointId]);
  if (row === undefined) return 'The endpoint was deleted.';
  const sample = await sampleTrouble(database, endpointId);
  const waiting = (await countWaiting(database, [endpointId], MAX_SHOWN_WAITING)).get(endpointId);
  const { mode, wabaId, tenantId } = row;
  const waits =
    mode === 'open' ? sample.failed > 0 || (sample.dueMs ?? 0) >= FLOWING_MS : waiting?.count !== 0;
  if (!waits || waiting === undefined) return `The endpoint is ${mode}; nothing waits because of trouble.`;
  const state: EndpointInTrouble['state'] =
    mode !== 'open' ? mode : sample.failed > 0 ? 'failing' : 'recovering';
  const since = (mode === 'open' ? (row.failingSince ?? sample.firstFailedAt) : null) ?? row.modeChangedAt;
  const endpoint = { ...row, ...sample, state, since, waiting, shownUrl: shownUrl(row.url) };
  const details = troubleDetails(
    endpoint,
    failure,
    `${publicUrl}/portal/w/${wabaId}/endpoints/${endpointId}`,
  );
  const head = sample.head === null ? null : publicDeliveryId(sample.head);
  return { state, details, tenantId, wabaId, head, lookAgainMs: lookAgainMs(endpoint, Date.now()) };
}

const ROW = `
  select e.id, e.waba_id as "wabaId", w.tenant_id as "tenantId", e.url, e.mode, e.mode_reason as "modeReason",
         e.mode_changed_at as "modeChangedAt", e.failing_since as "failingSince", e.next_probe_at as "nextProbeAt"
    from webhook_endpoints e join wabas w on w.waba_id = e.waba_id where e.id = cast(? as bigint)`;

/** While a backlog goes out. */
const BACKLOG_LOOK_MS = 10_000;

/** An attempt that is due is mostly made and recorded within this time. */
const ATTEMPT_MS = 5_000;

function lookAgainMs(endpoint: EndpointInTrouble, nowMs: number): number | null {
  const { state, nextProbeAt, nextRetries, dueMs } = endpoint;
  if (state === 'paused' || state === 'disabled') return null;
  const next = state === 'probing' ? nextProbeAt : dueMs === null ? nextRetries[0]?.at : null;
  return next == null ? BACKLOG_LOOK_MS : Math.max(next.getTime() - nowMs, 0) + ATTEMPT_MS;
}
