import { shownUrl } from '../../../platform/http/outbound-url.ts';
import { utcText } from '../../../platform/iso-time.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { query } from '../../../platform/postgres/sql.ts';
import { publicDeliveryId } from '../../../platform/public-ids.ts';
import type { EndpointMode } from '../../endpoint/endpoint-settings.ts';
import { countDeliveredSince, recoveringSince } from '../../endpoint/recovery.ts';
import type { Endpoint } from '../../endpoint/store.ts';
import { type FailedAttempt, sampleTrouble, type TroubleSample } from '../../queue/trouble.ts';
import { countWaiting, MAX_SHOWN_WAITING, shownCount, type WaitingDeliveries } from '../../queue/waiting.ts';

/** The last failure that a worker reported: what the run of the delivery shows too. */
export type ReportedFailure = { atMs: number; reason: string };

/** The content of an endpoint's run. `details` are Markdown; `skipHead` drops `head`. */
export type TroubleShown = {
  /**
   * While it is open, `failing`: since then no attempt has succeeded; `recovering`: it takes deliveries again, and some that
   * waited for that are still to go out; `retrying`: it takes deliveries, and refused some for themselves.
   */
  state: 'failing' | 'recovering' | 'retrying' | Exclude<EndpointMode, 'open'>;
  details: string;
  tenantId: string;
  wabaId: string;
  head: string | null;
  /** When something changes by itself; null: never. */
  lookAgainMs: number | null;
};

type EndpointRow = { tenantId: string } & Pick<Endpoint, 'id' | 'wabaId' | 'url' | 'mode' | 'modeReason'> &
  Pick<Endpoint, 'modeChangedAt' | 'failingSince' | 'recoveredAt' | 'backlogDueAt' | 'nextProbeAt'>;

type EndpointInTrouble = EndpointRow &
  TroubleSample & {
    state: TroubleShown['state'];
    since: Date;
    waiting: WaitingDeliveries;
    /** While it recovers. */
    delivered: number;
  };

/** A delivery that waits for less is on its way. */
const FLOWING_MS = 10_000;

/** Looks at an endpoint; a text says why it is in no trouble. */
export async function lookAtTrouble(
  { database, publicUrl }: { database: Database; publicUrl: string },
  endpointId: string,
  failure: ReportedFailure | null,
): Promise<TroubleShown | string> {
  const [row] = await query<EndpointRow>(database, ROW, { endpointId });
  if (row === undefined) return 'The endpoint was deleted.';
  const sample = await sampleTrouble(database, endpointId);
  const waiting = (await countWaiting(database, [endpointId], MAX_SHOWN_WAITING)).get(endpointId);
  const { mode, wabaId, tenantId } = row;
  const waits =
    mode === 'open' ? sample.failed > 0 || (sample.dueMs ?? 0) >= FLOWING_MS : waiting?.count !== 0;
  if (!waits || waiting === undefined) return `The endpoint is ${mode}; nothing waits because of trouble.`;
  const { state, since } = stateOf(row, sample, waiting);
  const delivered = state === 'recovering' ? await countDeliveredSince(database, endpointId, since) : 0;
  const endpoint: EndpointInTrouble = { ...row, ...sample, state, since, waiting, delivered };
  const details = detailsOf(endpoint, failure, `${publicUrl}/portal/w/${wabaId}/endpoints/${endpointId}`);
  const head = sample.head === null ? null : publicDeliveryId(sample.head);
  return { state, details, tenantId, wabaId, head, lookAgainMs: lookAgainMs(endpoint) };
}

function stateOf(row: EndpointRow, { firstFailedAt }: TroubleSample, waiting: WaitingDeliveries) {
  const { mode, modeChangedAt, failingSince } = row;
  if (mode !== 'open') return { state: mode, since: modeChangedAt };
  if (failingSince !== null) return { state: 'failing' as const, since: failingSince };
  const recovering = recoveringSince(row, waiting);
  return recovering === null
    ? { state: 'retrying' as const, since: firstFailedAt ?? modeChangedAt }
    : { state: 'recovering' as const, since: recovering };
}

const ROW = `
  select e.id, e.waba_id as "wabaId", w.tenant_id as "tenantId", e.url, h.mode, h.mode_reason as "modeReason",
         h.mode_changed_at as "modeChangedAt", h.failing_since as "failingSince", h.recovered_at as "recoveredAt",
         h.backlog_due_at as "backlogDueAt", h.next_probe_at as "nextProbeAt"
    from webhook_endpoints e join endpoint_health h on h.endpoint_id = e.id join wabas w on w.waba_id = e.waba_id
   where e.id = cast(:endpointId as bigint)`;

/** While a backlog goes out. */
const BACKLOG_LOOK_MS = 10_000;

/** An attempt that is due is mostly made and recorded within this time. */
const ATTEMPT_MS = 5_000;

function lookAgainMs(endpoint: EndpointInTrouble): number | null {
  const { state, nextProbeAt, nextRetries, dueMs } = endpoint;
  if (state === 'paused' || state === 'disabled') return null;
  if (state === 'recovering') return BACKLOG_LOOK_MS;
  const next = state === 'probing' ? nextProbeAt : dueMs === null ? nextRetries[0]?.at : null;
  return next == null ? BACKLOG_LOOK_MS : Math.max(next.getTime() - Date.now(), 0) + ATTEMPT_MS;
}

/** An endpoint in trouble in Markdown, for operators. Values from outside stand in code spans that they cannot close. */
function detailsOf(endpoint: EndpointInTrouble, failure: ReportedFailure | null, portalUrl: string): string {
  const { state, since, modeReason, waiting, dueMs } = endpoint;
  const oldest = waiting.oldestMs === null ? '' : `, the oldest for ${spanText(waiting.oldestMs)}`;
  const isHeldBack = state !== 'paused' && state !== 'disabled';
  const lines = [
    // The box of the Temporal UI may show some lines only: what leads on, and how old this is, stands at the top.
    `**${state}** since ${utcText(since)} (as of ${utcText(new Date())})${modeReason === null ? '' : `: ${code(modeReason, 300)}`}`,
    `[Endpoint ${endpoint.id}](${portalUrl}): ${code(shownUrl(endpoint.url), 300)}, tenant ${endpoint.tenantId}, WABA ${code(endpoint.wabaId, 64)}`,
    lastError(endpoint.failures, failure),
    `**Pending: ${shownCount(waiting)}**${oldest}${pendingParts(endpoint)}`,
    byType(endpoint),
    state === 'recovering' ? recovery(endpoint) : null,
    state === 'probing' && endpoint.nextProbeAt !== null
      ? `Next probe: ${utcText(endpoint.nextProbeAt)}`
      : null,
    isHeldBack && dueMs === null ? nextRetries(endpoint) : null,
    // The box is too low for its last line: it cuts off this one, a no-break space.
    '\u00A0',
  ];
  return lines.filter((line) => line !== null).join('\n\n');
}

function recovery({ delivered, backlogDueAt }: EndpointInTrouble): string {
  const forward = backlogDueAt === null ? '' : `; retries are brought forward at ${utcText(backlogDueAt)}`;
  return `Delivered since then: ${delivered.toLocaleString('en-US')}${forward}`;
}

const DUE: Record<EndpointInTrouble['state'], string> = {
  failing: 'due',
  recovering: 'due',
  retrying: 'due',
  probing: 'wait for a probe that succeeds',
  paused: 'wait until the endpoint is enabled',
  disabled: 'wait until the endpoint is enabled',
};

function pendingParts({ state, waiting }: EndpointInTrouble): string {
  const parts = [
    [waiting.retrying, 'wait for a retry'],
    [waiting.due, DUE[state]],
    [waiting.claimed, 'under way'],
    [waiting.queued, 'behind others of their key'],
    [waiting.held, 'held'],
  ] as const;
  const shown = parts.filter(([count]) => count > 0).map(([count, text]) => `${count} ${text}`);
  return shown.length === 0 ? '' : ` (${shown.join(', ')})`;
}

function byType({ byType: counts, looked, waiting }: EndpointInTrouble): string | null {
  const types = Object.entries(counts).sort(([, a], [, b]) => b - a);
  if (types.length === 0) return null;
  const part = looked < waiting.count ? ` (of ${looked} that were looked at)` : '';
  return `By type${part}: ${types.map(([type, n]) => `${code(type, 60)} ${n}`).join(', ')}`;
}

function nextRetries({ nextRetries: retries }: EndpointInTrouble): string | null {
  if (retries.length === 0) return null;
  const items = retries.map(
    ({ id, attempts, at }) =>
      `* ${utcText(at)}: attempt ${attempts + 1} of ${code(publicDeliveryId(id), 40)}`,
  );
  return `Next retries:\n\n${items.join('\n')}`;
}

function lastError(failures: readonly FailedAttempt[], reported: ReportedFailure | null): string | null {
  const logged = failures.slice(0, 1).map(({ at, error, statusCode }) => ({
    atMs: at.getTime(),
    reason: error ?? `the endpoint returned ${statusCode}`,
  }));
  const [shown] = [...(reported === null ? [] : [reported]), ...logged].sort((a, b) => b.atMs - a.atMs);
  if (shown === undefined) return null;
  const line = commonLine(failures);
  const body = line === null ? '' : `; the response begins with ${code(line, MAX_LINE_CHARS)}`;
  return `Last error: ${utcText(new Date(shown.atMs))}, ${code(shown.reason, 300)}${body}`;
}

const MAX_LINE_CHARS = 120;

/**
 * The first line of the last response, if events of several customers got the same: then it names none of them. Temporal
 * keeps what it gets for longer than an erasure may take, so digits that may be a number are left out as well.
 */
function commonLine(failures: readonly FailedAttempt[]): string | null {
  const line = firstLine(failures[0]?.body ?? null);
  const same = failures.filter(
    ({ body, conversationId }) => conversationId !== null && firstLine(body) === line,
  );
  const customers = new Set(same.map(({ conversationId }) => conversationId));
  return line === '' || customers.size < 2 ? null : line;
}

function firstLine(body: Buffer | null): string {
  const text = body?.toString('utf8') ?? '';
  const [line = ''] = text.trimStart().split(/\r?\n/, 1);
  return line
    .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\uFFFD]/gu, '')
    .split(' ')
    .map((word) => (word.includes('@') ? '…' : word))
    .join(' ')
    .replaceAll(/\d(?:[\s().-]*\d){4,}/g, '…')
    .trim();
}

function code(text: string, maxChars: number): string {
  return `\`${text.replaceAll('`', "'").replaceAll(/\s+/g, ' ').slice(0, maxChars)}\``;
}

function spanText(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 1) return `${Math.floor(ms / 1_000)} s`;
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`;
}
