import { shownCount } from '../../../accounts/shown-count.ts';
import { listUnfollowedWabas, type UnfollowedWaba } from '../../../database/followed-numbers.ts';
import { type HousekeepingStep, listHousekeepingSteps } from '../../../database/housekeeping-steps.ts';
import { countInbox } from '../../../database/inbox.ts';
import {
  listSetAsideReasons,
  oldestWaitingBodyAt,
  type SetAsideReason,
} from '../../../database/inbox-status.ts';
import {
  type Backlog,
  listSeenWorkers,
  listTroubledEndpoints,
  readBacklog,
  type SeenWorker,
  type TroubledEndpoint,
} from '../../../database/system-health.ts';
import { shownUrl } from '../../../domain/shown-url.ts';
import { PAGES } from '../access/page-access.ts';
import { sendPage } from '../access/send-page.ts';
import { viewerOf } from '../access/viewer.ts';
import { badge } from '../components/badge.ts';
import { emptyState } from '../components/empty-state.ts';
import { type Stat, statRow } from '../components/stat.ts';
import { dataTable } from '../components/table.ts';
import { durationText, timeAgo } from '../components/time.ts';
import { endpointPath } from '../endpoints/endpoint-context.ts';
import { modeBadge } from '../endpoints/endpoint-status.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { checkParts, type Part } from './parts.ts';

const MAX_ENDPOINTS = 100;
const REASONS_OF_DAYS = 7;

/** A worker is heard of every second. */
const SILENT_AFTER_MS = 10_000;

/** GET /portal/operator/health: whether everything works, and what waits. */
export function healthPage(app: PortalApp, context: PortalContext): void {
  const { config, database } = context;
  app.get('/portal/operator/health', { config: PAGES.operator }, async (request, reply) => {
    const [parts, workers, backlog, inbox, oldestBodyAt, reasons, endpoints, steps, wabas] =
      await Promise.all([
        checkParts(context),
        listSeenWorkers(database),
        readBacklog(database),
        countInbox(database),
        oldestWaitingBodyAt(database),
        listSetAsideReasons(database, REASONS_OF_DAYS),
        listTroubledEndpoints(database, MAX_ENDPOINTS),
        listHousekeepingSteps(database),
        listUnfollowedWabas(database, MAX_ENDPOINTS),
      ]);
    const now = new Date(context.now());
    return sendPage(reply, {
      title: 'System health',
      viewer: viewerOf(request),
      active: 'operator/health',
      actions: html`<a class="button" href="${config.temporal.uiUrl}">Temporal UI</a><a class="button" href="/portal/operator/health">Reload</a>`,
      body: html`${statRow(statsOf({ backlog, inbox, oldestBodyAt, now }))}
<h2>Parts</h2>${partTable(parts)}
<h2>Workers</h2>${workerTable(workers, now)}
<h2>Housekeeping</h2>${stepTable(steps, now)}
<h2>Endpoints that do not take everything</h2>${endpointTable(endpoints, now)}
${wabas.length > 0 && html`<h2>WABAs whose phone numbers cannot be followed</h2>${wabaTable(wabas, now)}`}
<h2>Upstream bodies that gave no event, last ${REASONS_OF_DAYS} days</h2>${reasonTable(reasons)}`,
    });
  });
}

function statsOf(system: {
  backlog: Backlog;
  inbox: Record<string, number>;
  oldestBodyAt: Date | null;
  now: Date;
}): Stat[] {
  const { backlog, inbox, oldestBodyAt, now } = system;
  const ageOf = (at: Date | null) => (at === null ? 0 : Math.max(0, now.getTime() - at.getTime()));
  const bodyAgeMs = ageOf(oldestBodyAt);
  const failed = inbox.failed ?? 0;
  const states = Object.entries(backlog.states).map(([state, n]) => `${n.toLocaleString('en-US')} ${state}`);
  return [
    {
      label: 'Deliveries not done',
      value: shownCount(backlog),
      note: states.join(', ') || 'nothing waits',
    },
    {
      label: 'Oldest undelivered',
      value: backlog.oldestAt === null ? '–' : durationText(ageOf(backlog.oldestAt)),
      ...(ageOf(backlog.oldestAt) > 3_600_000 && { tone: 'waiting' as const }),
    },
    {
      label: 'Bodies not taken in',
      value: (inbox.new ?? 0).toLocaleString('en-US'),
      note: bodyAgeMs === 0 ? 'none waits' : `oldest ${durationText(bodyAgeMs)}`,
      ...(bodyAgeMs > 10_000 && { tone: 'bad' as const }),
    },
    {
      label: 'Bodies that failed',
      value: failed.toLocaleString('en-US'),
      note: `${(inbox.set_aside ?? 0).toLocaleString('en-US')} set aside`,
      ...(failed > 0 && { tone: 'bad' as const }),
    },
  ];
}

function partTable(parts: readonly Part[]): Markup {
  return dataTable(
    'Parts of the installation',
    [
      { label: 'Part' },
      { label: 'What for' },
      { label: 'State', kind: 'narrow' },
      { label: 'Answered in', kind: 'number' },
    ],
    parts.map(({ name, purpose, ok, answerMs }) => [
      name,
      purpose,
      ok ? badge('good', 'Answers') : badge('bad', 'Away'),
      ok ? durationText(answerMs) : '–',
    ]),
  );
}

function workerTable(workers: readonly SeenWorker[], now: Date): Markup {
  if (workers.length === 0) {
    return emptyState('No worker was heard of', 'Events are kept, and nothing is delivered until one runs.');
  }
  return dataTable(
    'Worker processes',
    [{ label: 'Process' }, { label: 'State', kind: 'narrow' }, { label: 'Heard of', kind: 'narrow' }],
    workers.map(({ id, seenAt }) => {
      const isSilent = now.getTime() - seenAt.getTime() > SILENT_AFTER_MS;
      const state = isSilent ? badge('bad', 'Silent') : badge('good', 'Runs');
      return [html`<code>${id}</code>`, state, timeAgo(seenAt, now)];
    }),
  );
}

function stepTable(steps: readonly HousekeepingStep[], now: Date): Markup {
  if (steps.length === 0) return emptyState('Not done yet', 'The first worker that starts does it.');
  return dataTable(
    'Steps of housekeeping',
    [
      { label: 'Step' },
      { label: 'State', kind: 'narrow' },
      { label: 'Went well', kind: 'narrow' },
      { label: 'What fails' },
    ],
    steps.map(({ step, succeededAt, failingSince, error }) => [
      step,
      failingSince === null ? badge('good', 'Works') : badge('bad', 'Fails'),
      timeAgo(succeededAt, now),
      error ?? '',
    ]),
  );
}

function endpointTable(endpoints: readonly TroubledEndpoint[], now: Date): Markup {
  if (endpoints.length === 0) return emptyState('All endpoints take what is sent', 'There is nothing to do.');
  return dataTable(
    'Endpoints in trouble',
    [
      { label: 'Tenant' },
      { label: 'Endpoint' },
      { label: 'State', kind: 'narrow' },
      { label: 'Since', kind: 'narrow' },
      { label: 'Why' },
    ],
    endpoints.map((endpoint) => [
      endpoint.businessName,
      html`<a class="break" href="${endpointPath(endpoint.wabaId, endpoint.id)}">${shownUrl(endpoint.url)}</a>`,
      modeBadge(endpoint),
      timeAgo(endpoint.failingSince ?? endpoint.modeChangedAt, now),
      endpoint.modeReason ?? '',
    ]),
  );
}

function wabaTable(wabas: readonly UnfollowedWaba[], now: Date): Markup {
  return dataTable(
    'WABAs',
    [
      { label: 'Tenant' },
      { label: 'WABA', kind: 'narrow' },
      { label: 'Bodies that wait', kind: 'number' },
      { label: 'Upstream asked', kind: 'narrow' },
      { label: 'Problem' },
    ],
    wabas.map(({ businessName, wabaId, waiting, askedAt, problem }) => [
      businessName,
      html`<a href="/portal/operator/wabas/${wabaId}">${wabaId}</a>`,
      waiting.toLocaleString('en-US'),
      timeAgo(askedAt, now),
      problem ?? 'upstream is being asked',
    ]),
  );
}

function reasonTable(reasons: readonly SetAsideReason[]): Markup {
  if (reasons.length === 0)
    return emptyState('None', 'Every body from upstream gave the events that it holds.');
  return dataTable(
    'Reasons',
    [
      { label: 'Reason' },
      { label: 'Field' },
      { label: 'WABA', kind: 'narrow' },
      { label: 'Times', kind: 'number' },
      { label: 'Last', kind: 'narrow' },
    ],
    reasons.map(({ reason, field, wabaId, count, lastDay }) => [
      reason.replaceAll('_', ' '),
      field,
      html`<code>${wabaId}</code>`,
      count.toLocaleString('en-US'),
      lastDay,
    ]),
  );
}
