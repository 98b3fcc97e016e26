import { readLastErrors } from '../../../engine/deliveries/backlog.ts';
import { countRecentlyFailed } from '../../../engine/endpoint/endpoint-failures.ts';
import { countDeliveredSince } from '../../../engine/endpoint/recovery.ts';
import { troubleWorkflowId } from '../../../engine/queue/trouble.ts';
import { shownCount } from '../../../engine/queue/waiting.ts';
import { searchDeliveries } from '../../../features/delivery-log/delivery-search.ts';
import {
  countRuns,
  type EndpointStep,
  type RunCount,
  readEndpointStatistics,
} from '../../../features/endpoints/endpoint-statistics.ts';
import { type EndpointStatus, sameUrlNotice, sameUrlOf } from '../../../features/endpoints/endpoints.ts';
import { utcText } from '../../../platform/iso-time.ts';
import type { RequestError } from '../../../platform/request-input.ts';
import { PAGES } from '../access/page-access.ts';
import type { Viewer } from '../access/viewer.ts';
import { postForm, radios, textField } from '../components/form.ts';
import { noticeBox } from '../components/notice.ts';
import { percentText } from '../components/percent.ts';
import { statRow } from '../components/table.ts';
import { durationText, relativeText } from '../components/time.ts';
import { workflowLink } from '../components/workflow-link.ts';
import { deliveryTable } from '../deliveries/delivery-table.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { ENDPOINT_PATH, endpointShell } from './endpoint-shell.ts';
import {
  disablingSentence,
  endpointPath,
  failedPath,
  isInTrouble,
  modeBadge,
  modeSentence,
  successRate,
  troubleReason,
} from './endpoint-status.ts';

const HOUR_MS = 3_600_000;
const RECENT = 10;
const MANY = 50;

export function endpointPage(app: PortalApp, context: PortalContext): void {
  const place = { access: PAGES.member, active: 'endpoints' };
  viewPage(app, context, { ...place, path: ENDPOINT_PATH, view: (visit) => endpointView(visit) });
  viewPage(app, context, { ...place, path: `${ENDPOINT_PATH}/deliveries`, view: deliveriesView });
}

/** How the endpoint is; `error` is about a form on it. Throws RequestError `unknown_endpoint`, ApiError 404. */
export async function endpointView(visit: Visit, error: RequestError | null = null): Promise<PageView> {
  return await endpointShell(visit, 'overview', ({ endpoint }) => overviewOf(visit, endpoint), error);
}

async function deliveriesView(visit: Visit): Promise<PageView> {
  return await endpointShell(visit, 'deliveries', ({ endpoint }) => newestDeliveries(visit, endpoint, MANY));
}

/** The newest of seven days, with the way to the list, which has filters. */
async function newestDeliveries(visit: Visit, { id }: EndpointStatus, limit: number): Promise<Markup> {
  const { context, viewer, now } = visit;
  const { wabaId } = visit.waba;
  await visit.noteListRead('deliveries.listed', [wabaId]);
  const found = await searchDeliveries(context, wabaId, { endpointId: id }, { before: null, limit });
  const base = `/portal/w/${encodeURIComponent(wabaId)}/deliveries`;
  const { deliveries } = found;
  if (deliveries.length === 0) return html`<p class="faint">No deliveries within seven days.</p>`;
  const hrefOf = (one: string) => `${base}/${one}`;
  const table = deliveryTable({ viewer, now, hrefOf, withOwner: false, withEndpoint: false, deliveries });
  return html`${table}<p><a href="${base}?endpointId=${id}">Search all deliveries to this endpoint</a></p>`;
}

async function overviewOf(visit: Visit, endpoint: EndpointStatus): Promise<Markup> {
  const { context, viewer, now } = visit;
  const { database, config } = context;
  const { id, wabaId } = endpoint;
  const path = endpointPath(wabaId, id);
  const until = new Date(Math.floor(now.getTime() / HOUR_MS + 1) * HOUR_MS);
  const since = new Date(until.getTime() - 24 * HOUR_MS);
  const { recoveringSince } = endpoint;
  const [steps, recent, failed, errors, delivered, sameUrl, runs] = await Promise.all([
    readEndpointStatistics(database, wabaId, id, { interval: 'hour', since, until }),
    newestDeliveries(visit, endpoint, RECENT),
    countRecentlyFailed(database, wabaId),
    readLastErrors(database, isInTrouble(endpoint) ? [id] : []),
    recoveringSince === null ? null : countDeliveredSince(database, id, recoveringSince),
    sameUrlOf(database, endpoint).then(sameUrlNotice),
    alwaysHasRuns(endpoint, config) ? countRuns(database, endpoint) : null,
  ]);
  const lastError = errors.get(id) ?? null;
  const disabling = disablingSentence(endpoint, config.webhooks.disableAfterHours);
  return html`${sameUrl !== null && noticeBox({ kind: 'warning', text: sameUrl })}<div class="card state"><p>${modeBadge(endpoint)} ${modeSentence(endpoint)}</p>
${modeFacts(endpoint, { lastError, delivered }, now)}${disabling !== null && html`<p class="faint">${disabling}</p>`}${runOf(visit, endpoint)}${viewer.role !== 'member' && modeControls(viewer, path, endpoint)}</div>
${figures(endpoint, { steps, failed: failed.get(id) ?? 0, runs }, now)}
${steps.some(({ successes, failures }) => successes + failures > 0) && attemptChart(steps)}
<h2>Recent deliveries</h2>
${recent}`;
}

function hasRun(endpoint: EndpointStatus): boolean {
  const { recoveringSince, waiting } = endpoint;
  if (waiting.count === 0) return false;
  return isInTrouble(endpoint) || recoveringSince !== null || waiting.retrying > 0;
}

/** For operators: the run that shows the trouble in the Temporal UI, which is there while something waits because of it. */
function runOf(visit: Visit, endpoint: EndpointStatus): Child {
  if (visit.viewer.role !== 'operator' || !hasRun(endpoint)) return false;
  return html`<p class="faint">In Temporal: ${workflowLink(visit, troubleWorkflowId(endpoint.id))}</p>`;
}

function modeFacts(
  endpoint: EndpointStatus,
  { lastError, delivered }: { lastError: string | null; delivered: number | null },
  now: Date,
): Child {
  const { mode, modeChangedAt, failingSince, recoveringSince, nextProbeAt } = endpoint;
  const reason = troubleReason(endpoint, lastError);
  const facts = [
    reason !== '' && `Reason: ${reason}`,
    mode !== 'open' && `since ${utcText(modeChangedAt)}`,
    failingSince !== null && `failing for ${durationText(now.getTime() - failingSince.getTime())}`,
    recoveringSince !== null &&
      `accepting deliveries for ${durationText(now.getTime() - recoveringSince.getTime())}`,
    delivered !== null && `${delivered.toLocaleString('en-US')} delivered since then`,
    nextProbeAt !== null && mode === 'probing' && `next probe ${relativeText(nextProbeAt, now)}`,
  ].filter((fact) => fact !== false);
  return facts.length > 0 && html`<p class="faint">${facts.join(' · ')}</p>`;
}

function figures(
  { id, wabaId, mode, recoveringSince, waiting }: EndpointStatus,
  { steps, failed, runs }: { steps: readonly EndpointStep[]; failed: number; runs: RunCount | null },
  now: Date,
): Markup {
  const sum = (key: 'successes' | 'failures' | 'totalMs') =>
    steps.reduce((total, step) => total + step[key], 0);
  const [successes, failures] = [sum('successes'), sum('failures')];
  const attempts = successes + failures;
  const rate = successRate({ successes, failures });
  const oldest = waiting.oldestMs === null ? null : new Date(now.getTime() - waiting.oldestMs);
  const parts = [
    waiting.retrying > 0 && `${waiting.retrying} retrying`,
    waiting.due > 0 && recoveringSince !== null && `${waiting.due} due`,
    waiting.due > 0 && mode === 'probing' && `${waiting.due} until a probe succeeds`,
    waiting.queued > 0 && `${waiting.queued} behind an earlier event`,
    waiting.unreleased > 0 && `${waiting.unreleased} waiting for other messages or catalog data`,
    waiting.suspended > 0 && `${waiting.suspended} of paused replays`,
  ].filter((part) => part !== false);
  return statRow([
    {
      label: 'Success rate, 24 h',
      value: rate ?? '–',
      tone: failures > attempts / 10 && 'bad',
      note: `${attempts.toLocaleString('en-US')} attempts`,
    },
    { label: 'Failed attempts', value: failures.toLocaleString('en-US') },
    {
      label: 'Failed permanently, 24 h',
      value: failed,
      note: failed === 0 ? 'no failures' : html`<a href="${failedPath(wabaId, id)}">Show them</a>`,
      tone: failed > 0 && 'bad',
    },
    { label: 'Mean response time', value: attempts === 0 ? '–' : durationText(sum('totalMs') / attempts) },
    {
      label: 'Pending',
      value: shownCount(waiting),
      tone: waiting.count > 0 && 'waiting',
      note: waiting.count === 0 ? 'no backlog' : parts.join(', '),
    },
    { label: 'Oldest pending', value: oldest === null ? '–' : relativeText(oldest, now) },
    ...(runs === null ? [] : [runFigure(runs)]),
  ]);
}

/** Whether some deliveries are meant to have a run, whatever the traffic. */
function alwaysHasRuns(
  { deliveryWorkflows, alwaysWorkflowsFor }: EndpointStatus,
  { delivery }: PortalContext['config'],
): boolean {
  return alwaysWorkflowsFor !== null || (deliveryWorkflows ?? delivery.workflows) === 'always';
}

function runFigure({ deliveries, withRun }: RunCount) {
  return {
    label: 'With a workflow run',
    value: deliveries === 0 ? '–' : percentText(Math.floor((withRun / deliveries) * 100)),
    note: deliveries === 0 ? 'no deliveries yet' : `of the last ${deliveries}`,
    tone: withRun < deliveries && ('waiting' as const),
  };
}

type Step = { at: Date; successes: number; failures: number };

const WIDTH = 720;
const UP = 72;
const DOWN = 36;
const GAP = 2;

/** Successes up, failures down from the line, so that neither needs its colour. */
function attemptChart(steps: readonly Step[]): Markup {
  const most = Math.max(1, ...steps.map(({ successes }) => successes));
  const mostFailures = Math.max(1, ...steps.map(({ failures }) => failures));
  const width = WIDTH / Math.max(1, steps.length);
  const bars = steps.map((step, at) => {
    const up = heightOf(step.successes, most, UP);
    const down = heightOf(step.failures, Math.max(mostFailures, most / 2), DOWN);
    const x = (at * width + GAP / 2).toFixed(1);
    const barWidth = (width - GAP).toFixed(1);
    return html`<g><title>${hourOf(step.at)} UTC: ${step.successes} succeeded, ${step.failures} failed</title>
<rect class="hour" x="${x}" y="0" width="${barWidth}" height="${UP + DOWN}"/>
<rect class="success" x="${x}" y="${(UP - up).toFixed(1)}" width="${barWidth}" height="${up.toFixed(1)}"/>
<rect class="failure" x="${x}" y="${UP + 1}" width="${barWidth}" height="${down.toFixed(1)}"/></g>`;
  });
  const total = (key: 'successes' | 'failures') => steps.reduce((sum, step) => sum + step[key], 0);
  const label = `Attempts of the last ${steps.length} hours: ${total('successes')} succeeded, ${total('failures')} failed`;
  return html`<figure class="attempt-chart"><svg viewBox="0 0 ${WIDTH} ${UP + DOWN + 2}" role="img" aria-label="${label}" preserveAspectRatio="none">${bars}<line class="axis" x1="0" x2="${WIDTH}" y1="${UP + 0.5}" y2="${UP + 0.5}"/></svg>
<figcaption><span>${hourOf(steps[0]?.at)}</span><span>succeeded above the line, failed below</span><span>now</span></figcaption></figure>`;
}

/** What there is of something shows, however little beside the most. */
function heightOf(value: number, most: number, height: number): number {
  return value === 0 ? 0 : Math.max(2, (value / most) * height);
}

function hourOf(at: Date | undefined): string {
  return at === undefined ? '' : at.toISOString().slice(11, 16);
}

function modeControls(viewer: Viewer, path: string, endpoint: EndpointStatus): Markup {
  const { mode } = endpoint;
  return html`${mode !== 'open' && enableForm(viewer, path, endpoint)}${holdForm(viewer, path, mode)}`;
}

function holdForm(viewer: Viewer, path: string, mode: EndpointStatus['mode']): Markup {
  const reason = textField({
    label: 'Reason',
    name: 'reason',
    maxLength: 200,
    hint: 'Shown in the list and in the audit log.',
  });
  const pause = mode !== 'paused' && html`<button>Pause the endpoint</button>`;
  const disable =
    mode !== 'disabled' && html`<button formaction="${path}/disable">Disable the endpoint</button>`;
  return html`<details class="quiet"><summary>Pause or disable</summary>${postForm(
    viewer,
    `${path}/pause`,
    html`${reason}<div class="buttons">${pause}${disable}</div>
<p class="faint">In both cases its events wait. Pause it for a short time, disable it if it is out of service.</p>`,
  )}</details>`;
}

function enableForm(viewer: Viewer, path: string, { waiting }: EndpointStatus): Markup {
  const count = shownCount(waiting);
  const one = count === '1';
  const choice =
    waiting.count === 0
      ? html`<p>No events are pending.</p>`
      : radios({
          label: `${count} pending ${one ? 'event' : 'events'}`,
          name: 'waiting',
          options: [
            { value: 'send', label: `Send ${one ? 'it' : 'them'} first, in order` },
            {
              value: 'drop',
              label: `Drop ${one ? 'it' : 'them'}; ${one ? 'it stays' : 'they stay'} in the log, and a replay can send ${one ? 'it' : 'them'}`,
            },
          ],
        });
  return postForm(
    viewer,
    `${path}/enable`,
    html`${choice}<div class="buttons"><button class="primary">Enable</button></div>`,
  );
}
