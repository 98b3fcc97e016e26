import { readLastErrors } from '../../../deliveries/backlog.ts';
import { searchDeliveries } from '../../../deliveries/search/delivery-search.ts';
import { countRecentlyFailed } from '../../../endpoints/endpoint-failures.ts';
import { type EndpointStep, readEndpointStatistics } from '../../../endpoints/endpoint-statistics.ts';
import {
  type EndpointStatus,
  type EndpointView,
  endpointStatus,
  sameUrlNotice,
  sameUrlOf,
} from '../../../endpoints/endpoints.ts';
import { countDeliveredSince } from '../../../endpoints/recovery.ts';
import { type InstallationSettings, installationSettings, textOf } from '../../../endpoints/setting.ts';
import { type AnySetting, settingsOf } from '../../../endpoints/settings.ts';
import type { RequestError } from '../../../platform/request-input.ts';
import { workflowUrl } from '../../../platform/temporal/client-connection.ts';
import { troubleWorkflowId } from '../../../queue/trouble.ts';
import { shownCount } from '../../../queue/waiting.ts';
import { PAGES } from '../access/page-access.ts';
import type { Viewer } from '../access/viewer.ts';
import { codeBlock } from '../components/copyable.ts';
import { actionButton, postForm, radios, selectField, textField } from '../components/form.ts';
import { noticeBox } from '../components/notice.ts';
import { detailList, statRow } from '../components/table.ts';
import { durationText, exactTime, relativeText, utcText } from '../components/time.ts';
import { deliveryTable } from '../deliveries/delivery-table.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { certificateControls } from './client-certificate.ts';
import {
  disablingSentence,
  endpointPath,
  endpointsPath,
  failedPath,
  mayChange,
  modeBadge,
  modeSentence,
  successRate,
  troubleReason,
  urlFor,
} from './endpoint-status.ts';
import { verifySamples } from './secret-page.ts';

const HOUR_MS = 3_600_000;
const RECENT = 10;

const DONE = {
  saved: 'The settings are saved.',
  moved: html`The settings are saved. The previous server still knows the signing secret: <a href="#secret">rotate it</a>.`,
  'moved-without-headers': html`The settings are saved. The URL leads to another server, so your custom headers were removed: enter them again if it needs them. The previous server still knows the signing secret: <a href="#secret">rotate it</a>.`,
  paused: 'The endpoint is paused. Its events wait.',
  disabled: 'The endpoint is disabled. Its events wait.',
  enabled: 'The endpoint is enabled.',
  retried: 'What waits for a retry is sent now, as fast as the endpoint takes it.',
  sent: 'The endpoint is enabled. Pending events are sent first, in order.',
  'key-rotated': 'The endpoint signs with a new key. Give its public key to your receivers.',
  'certificate-set': 'The certificate is set. It is shown from the next attempt on.',
  'certificate-removed': 'The certificate is removed.',
  dropped: 'The endpoint is enabled. Pending events were dropped and stay in the log.',
};

export function endpointPage(app: PortalApp, context: PortalContext): void {
  const place = { path: '/portal/w/:wabaId/endpoints/:id', access: PAGES.member, active: 'endpoints' };
  viewPage(app, context, { ...place, view: (visit) => endpointView(visit) });
}

/** The page of an endpoint; `error` is about a form on it. Throws RequestError `unknown_endpoint`, ApiError 404. */
export async function endpointView(visit: Visit, error: RequestError | null = null): Promise<PageView> {
  const { context, viewer } = visit;
  const { wabaId } = visit.waba;
  const endpoint = await endpointStatus(context.accounts, wabaId, visit.id);
  await visit.noteListRead('deliveries.listed', [wabaId]);
  return {
    title: endpoint.description || new URL(endpoint.url).host,
    lead: html`<code class="break">${urlFor(viewer, endpoint.url)}</code>`,
    trail: [{ label: 'Webhook endpoints', href: endpointsPath(wabaId) }],
    actions: visit.mayChange && pageActions(viewer, endpointPath(wabaId, endpoint.id), endpoint),
    done: DONE,
    notice: error && { kind: 'error', text: error.message },
    assets: ['webhooks.css'],
    body: await bodyOf(context, viewer, endpoint),
    error,
  };
}

function pageActions(viewer: Viewer, path: string, { mode, waiting }: EndpointStatus): Markup {
  const isRetryable = mode === 'open' ? waiting.retrying > 0 : mode === 'probing';
  return html`<a class="button" href="${path}/edit">Edit</a>${isRetryable && actionButton(viewer, `${path}/retry`, 'Retry now')}${actionButton(viewer, `${path}/test`, 'Send test event', 'primary')}`;
}

async function bodyOf(context: PortalContext, viewer: Viewer, endpoint: EndpointStatus): Promise<Markup> {
  const { database, config } = context;
  const { id, wabaId } = endpoint;
  const path = endpointPath(wabaId, id);
  const now = new Date(context.now());
  const until = new Date(Math.floor(now.getTime() / HOUR_MS + 1) * HOUR_MS);
  const since = new Date(until.getTime() - 24 * HOUR_MS);
  const { recoveringSince } = endpoint;
  const [steps, recent, failed, errors, delivered, sameUrl] = await Promise.all([
    readEndpointStatistics(database, wabaId, id, { interval: 'hour', since, until }),
    searchDeliveries({ database }, wabaId, { endpointId: id }, { before: null, limit: RECENT }),
    countRecentlyFailed(database, wabaId),
    readLastErrors(database, isInTrouble(endpoint) ? [id] : []),
    recoveringSince === null ? null : countDeliveredSince(database, id, recoveringSince),
    sameUrlOf(database, endpoint).then(sameUrlNotice),
  ]);
  const lastError = errors.get(id) ?? null;
  const disabling = disablingSentence(endpoint, config.webhooks.disableAfterHours);
  const defaults = installationSettings(config);
  const base = `/portal/w/${encodeURIComponent(wabaId)}/deliveries`;
  const table = { now, hrefOf: (one: string) => `${base}/${one}`, withOwner: false, withEndpoint: false };
  return html`${sameUrl !== null && noticeBox({ kind: 'warning', text: sameUrl })}<div class="card state"><p>${modeBadge(endpoint)} ${modeSentence(endpoint)}</p>
${modeFacts(endpoint, { lastError, delivered }, now)}${disabling !== null && html`<p class="faint">${disabling}</p>`}${runOf(context, viewer, endpoint)}${mayChange(viewer) && modeControls(viewer, path, endpoint)}</div>
${figures(endpoint, steps, failed.get(id) ?? 0, now)}
${steps.some(({ successes, failures }) => successes + failures > 0) && attemptChart(steps)}
<h2>Recent deliveries</h2>
${
  recent.deliveries.length === 0
    ? html`<p class="faint">No deliveries within seven days.</p>`
    : html`${deliveryTable({ ...table, deliveries: recent.deliveries })}<p><a href="${base}?endpointId=${id}">All deliveries to this endpoint</a></p>`
}
<h2>Settings</h2>
<div class="card">${settingsList(endpoint, defaults)}<p><a href="${path}/filter">Try a content filter on recent events</a></p></div>
<h2 id="secret">Signing secret</h2>
<div class="card">${secretControls(viewer, path, endpoint)}</div>
${endpoint.asymmetricSignature !== 'none' && html`<h2 id="public-key">Public key</h2><div class="card">${publicKeyControls(viewer, path, endpoint)}</div>`}
<h2 id="client-certificate">Client certificate</h2>
<div class="card">${certificateControls(viewer, path, endpoint, now)}</div>
<h2>Verify the signature</h2>
<p class="lead">Verify it over the raw bytes, before you parse them. See also the <a href="/portal/w/${wabaId}/event-types">event types</a>.</p>
${verifySamples(endpoint)}
${mayChange(viewer) && html`<h2>Delete</h2><p><a class="button danger" href="${path}/delete">Delete this endpoint</a></p>`}`;
}

function isInTrouble({ mode, failingSince }: EndpointStatus): boolean {
  return mode !== 'open' || failingSince !== null;
}

function hasRun(endpoint: EndpointStatus): boolean {
  const { recoveringSince, waiting } = endpoint;
  if (waiting.count === 0) return false;
  return isInTrouble(endpoint) || recoveringSince !== null || waiting.retrying > 0;
}

/** For operators: the run that shows the trouble in the Temporal UI, which is there while something waits because of it. */
function runOf({ config }: PortalContext, viewer: Viewer, endpoint: EndpointStatus): Child {
  if (viewer.role !== 'operator' || !hasRun(endpoint)) return false;
  const workflowId = troubleWorkflowId(endpoint.id);
  return html`<p class="faint">In Temporal: <a href="${workflowUrl(config.temporal, workflowId)}" rel="noreferrer">${workflowId}</a></p>`;
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
  steps: readonly EndpointStep[],
  failed: number,
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
    waiting.unreleased > 0 && `${waiting.unreleased} waiting for catalog data`,
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
  ]);
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

/** Every setting of an endpoint, also those that were left to the defaults. */
export function settingsList(endpoint: EndpointView, defaults: InstallationSettings): Markup {
  const { wantedOrderScope } = endpoint;
  const rows = settingsOf('what', 'order', 'signature', 'retries', 'limits').map(
    ([name, setting]): [string, Child] => {
      const shown = shownValue(setting, endpoint[name], defaults);
      const isWaiting = name === 'orderScope' && wantedOrderScope !== null;
      const wanted = html`${shown}; changes to ${wantedOrderScope} when no delivery is pending, or when the endpoint is paused`;
      return [setting.portal.label, isWaiting ? wanted : shown];
    },
  );
  return detailList([
    ['Id', html`<code>${endpoint.id}</code>`],
    ...rows,
    ['Custom headers', headerText(endpoint.customHeaderNames)],
    ['Created', exactTime(endpoint.createdAt)],
    ['Changed', exactTime(endpoint.updatedAt)],
  ]);
}

function shownValue({ portal }: AnySetting, value: unknown, defaults: InstallationSettings): Child {
  if (value === null || value === undefined) return byDefault(textOf(portal.byDefault, defaults));
  const text = portal.show?.(value) ?? (Array.isArray(value) ? value.join(', ') : String(value));
  return portal.isMonospaced ? html`<span class="mono">${text}</span>` : text;
}

function headerText(names: readonly string[] | null): Child {
  if (names === null) return 'not readable: their encryption key is missing';
  return names.length === 0 ? byDefault('none') : html`<span class="mono">${names.join(', ')}</span>`;
}

function byDefault(text: string): Markup {
  return html`${text} <span class="faint">(default)</span>`;
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

const overlaps = (what: string) => [
  { value: '24', label: '24 hours' },
  { value: '0', label: `No overlap: the current ${what} ends now` },
  { value: '1', label: '1 hour' },
  { value: '72', label: '3 days' },
  { value: '168', label: '7 days' },
];

/** The secret itself is never shown here; a new one is, once. */
function secretControls(viewer: Viewer, path: string, endpoint: EndpointStatus): Markup {
  const { previousSecretExpiresAt } = endpoint;
  const rotate = postForm(
    viewer,
    `${path}/rotate-secret`,
    html`${selectField({ label: 'The current secret stays valid for', name: 'overlapHours', value: '24', options: overlaps('secret'), hint: 'Meanwhile webhooks carry the signatures of both secrets, so that you can switch without downtime.' })}
${textField({ label: 'A secret of your own', name: 'ownSecret', type: 'password', maxLength: 200, hint: 'Leave empty to generate one. Otherwise whsec_ and the base64 of 24 to 64 random bytes.' })}
<div class="buttons"><button>Rotate the secret</button></div>`,
  );
  return html`<p>It was shown once and cannot be shown again. ${previousSecretExpiresAt !== null && html`The previous secret signs too until ${utcText(previousSecretExpiresAt)}.`}</p>
${mayChange(viewer) && html`<details class="quiet"><summary>Rotate the secret</summary>${rotate}</details>`}`;
}

/** Public keys are shown whenever they are wanted; private keys never. */
function publicKeyControls(viewer: Viewer, path: string, { publicKeys }: EndpointStatus): Markup {
  const rotate = postForm(
    viewer,
    `${path}/rotate-signing-key`,
    html`${selectField({ label: 'The current key stays valid for', name: 'keyOverlapHours', value: '24', options: overlaps('key'), hint: 'Meanwhile webhooks carry the signatures of both keys.' })}
<div class="buttons"><button>Rotate the key</button></div>`,
  );
  const shown =
    publicKeys?.map(({ publicKey, expiresAt }) =>
      expiresAt === null
        ? html`<p>Receivers verify the v1a signature with it. It is no secret.</p>${codeBlock(publicKey, 'The public key')}`
        : html`<p>The previous key signs too until ${utcText(expiresAt)}:</p>${codeBlock(publicKey, 'The previous public key')}`,
    ) ??
    html`<p class="problem">The private key cannot be read: the key that it was encrypted with is missing.</p>`;
  return html`${shown}
${mayChange(viewer) && html`<details class="quiet"><summary>Rotate the key</summary>${rotate}</details>`}`;
}
