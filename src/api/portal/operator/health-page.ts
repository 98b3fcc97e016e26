import {
  listTroubledEndpoints,
  readLastErrors,
  type TroubledEndpoint,
} from '../../../engine/deliveries/backlog.ts';
import { LATELY_MINUTES } from '../../../engine/deliveries/loop/run-share.ts';
import { countWaiting, shownCount, type WaitingDeliveries } from '../../../engine/queue/waiting.ts';
import { listUnfollowedWabas, type UnfollowedWaba } from '../../../features/accounts/followed-numbers.ts';
import { listQuarantineReasons, type QuarantineTotal } from '../../../ingest/bodies/quarantine.ts';
import { type Answers, type AnswerTo, askAll, healthOf, requireUp } from '../../../ops/health/questions.ts';
import { shownUrl } from '../../../platform/http/outbound-url.ts';
import type { HousekeepingStep, SeenWorker } from '../../../platform/postgres/worker-processes.ts';
import { PAGES } from '../access/page-access.ts';
import { badge } from '../components/badge.ts';
import { noticeBox } from '../components/notice.ts';
import { percentText } from '../components/percent.ts';
import { dataTable, emptyState, type Stat, statRow } from '../components/table.ts';
import { durationText, timeAgo } from '../components/time.ts';
import { ANSWER_WITHIN_MS, responds } from '../dependencies.ts';
import { endpointPath, modeBadge, troubleReason, waitingText } from '../endpoints/endpoint-status.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

const MAX_ENDPOINTS = 100;
const MAX_WORKERS = 50;
const MAX_COUNTED_OF_ENDPOINT = 1_000;
const REASONS_OF_DAYS = 7;

const ASKED = [
  'pending',
  'oldestPending',
  'inbox',
  'quarantined',
  'oldestBody',
  'workers',
  'housekeeping',
] as const;

const TONES = { up: false, degraded: 'waiting', down: 'bad' } as const;

export function healthPage(app: PortalApp, context: PortalContext): void {
  const { config, database } = context;
  const view = async ({ now }: Visit) => {
    const [parts, system, reasons, endpoints, wabas] = await Promise.all([
      checkParts(context),
      askAll(ASKED, { database }),
      listQuarantineReasons(database, REASONS_OF_DAYS),
      listTroubledEndpoints(database, MAX_ENDPOINTS),
      listUnfollowedWabas(database, MAX_ENDPOINTS),
    ]);
    const counted = endpoints[0]?.counted ?? { failing: 0, paused: 0 };
    const ids = endpoints.map(({ id }) => id);
    const waiting = await countWaiting(database, ids, MAX_COUNTED_OF_ENDPOINT);
    const errors = await readLastErrors(database, ids);
    const sections = [
      endpointSection({ endpoints, counted, waiting, errors, now }),
      partSection(parts),
      workerSection(system.workers, now),
      housekeepingSection(system.housekeeping, now),
      ...(wabas.length > 0 ? [wabaSection(wabas, now)] : []),
      {
        heading: `Quarantine, last ${REASONS_OF_DAYS} days`,
        content: reasonTable(reasons),
        isBad: false,
      },
    ];
    return {
      title: 'System health',
      actions: html`<a class="button" href="${config.temporal.uiUrl}">Temporal UI</a><a class="button" href="/portal/operator/health">Reload</a>`,
      body: html`${problemBox(sections)}${statRow(statsOf(system, counted, now))}
${sections
  .toSorted((a, b) => Number(b.isBad) - Number(a.isBad))
  .map(({ heading, content }) => html`<h2>${heading}</h2>${content}`)}`,
    };
  };
  const place = { path: '/portal/operator/health', access: PAGES.operator, active: 'operator/health' };
  viewPage(app, context, { ...place, view });
}

/** A part of the page; those in which something fails come first. */
type Section = {
  heading: string;
  content: Markup;
  isBad: boolean;
  /** Sentences about parts of the installation that fail, for the box above all. */
  problems?: readonly string[];
};

function problemBox(sections: readonly Section[]): Markup | null {
  const problems = sections.flatMap((section) => section.problems ?? []);
  return problems.length === 0 ? null : noticeBox({ kind: 'error', text: problems.join(' ') });
}

function statsOf(
  { pending, oldestPending, inbox, quarantined, oldestBody, workers }: Answers<(typeof ASKED)[number]>,
  counted: TroubledCount,
  now: Date,
): Stat[] {
  const age = (at: Date) => durationText(Math.max(0, now.getTime() - at.getTime()));
  const states = Object.entries(pending.states).map(([state, n]) => `${n.toLocaleString('en-US')} ${state}`);
  return [
    {
      label: 'Failing endpoints',
      value: counted.failing.toLocaleString('en-US'),
      note: failingNote(counted),
      tone: counted.failing > 0 && 'bad',
    },
    { label: 'Pending deliveries', value: shownCount(pending), note: states.join(', ') || 'no backlog' },
    {
      label: 'Oldest pending',
      value: oldestPending === null ? '–' : age(oldestPending),
      tone: TONES[healthOf('oldestPending', oldestPending)],
    },
    {
      label: 'Intake backlog',
      value: inbox.new.toLocaleString('en-US'),
      note: oldestBody === null ? 'no backlog' : `oldest ${age(oldestBody)}`,
      tone: TONES[healthOf('oldestBody', oldestBody)],
    },
    {
      label: 'Failed bodies',
      hint: 'Webhooks of the upstream platform that are stored, but could not become events.',
      value: inbox.failed.toLocaleString('en-US'),
      note: `${quarantined.quarantined.toLocaleString('en-US')} with items in quarantine`,
      tone: healthOf('inbox', inbox) !== 'up' && 'bad',
    },
    runShare(workers.filter(({ isUp }) => isUp)),
  ];
}

function failingNote({ failing, paused }: TroubledCount): string {
  const others = paused === 0 ? '' : `${paused.toLocaleString('en-US')} paused`;
  if (failing > 0) return `probing, failing or disabled${others && `; ${others}`}`;
  return others ? `${others}; all others accept deliveries` : 'all accept deliveries';
}

/** How many of the latest attempts an operator finds in Temporal by themselves. */
function runShare(workers: readonly SeenWorker[]): Stat {
  const attempts = workers.reduce((sum, worker) => sum + worker.attempts, 0);
  const withRun = workers.reduce((sum, worker) => sum + worker.withRun, 0);
  return {
    label: 'Attempts with a run',
    hint: 'Deliveries that can be looked up one by one in the Temporal UI. The others are delivered just as well.',
    value: attempts === 0 ? '–' : percentText(Math.round((100 * withRun) / attempts)),
    note: `in Temporal, of ${attempts.toLocaleString('en-US')} in ${LATELY_MINUTES} minutes`,
  };
}

function partSection(parts: readonly Part[]): Section {
  const problems = parts.filter(({ ok }) => !ok).map(({ name }) => `${name} is down.`);
  const content = dataTable(
    'Dependencies of the installation',
    ['Service', 'Purpose', { label: 'Status', kind: 'narrow' }, { label: 'Response time', kind: 'number' }],
    parts.map(({ name, purpose, ok, answerMs }) => [
      name,
      purpose,
      ok ? badge('good', 'Up') : badge('bad', 'Down'),
      ok ? durationText(answerMs) : '–',
    ]),
  );
  return { heading: 'Dependencies', content, isBad: problems.length > 0, problems };
}

function workerSection(workers: AnswerTo<'workers'>, now: Date): Section {
  const isBad = healthOf('workers', workers) !== 'up';
  const problems = isBad ? ['No worker is up: events are stored, but not delivered.'] : [];
  return { heading: 'Workers', content: workerTable(workers, now), isBad, problems };
}

function workerTable(workers: readonly SeenWorker[], now: Date): Markup {
  if (workers.length === 0) {
    return emptyState('No worker is up', 'Events are stored, but not delivered until a worker runs.');
  }
  return dataTable(
    'Worker processes',
    ['Process', { label: 'Status', kind: 'narrow' }, { label: 'Last heartbeat', kind: 'narrow' }],
    workers
      .slice(0, MAX_WORKERS)
      .map(({ id, isUp, seenAt }) => [
        html`<code>${id}</code>`,
        isUp ? badge('good', 'Up') : badge('bad', 'Down'),
        timeAgo(seenAt, now),
      ]),
  );
}

function housekeepingSection(steps: readonly HousekeepingStep[], now: Date): Section {
  const failing = steps.filter(({ failingSince }) => failingSince !== null).map(({ step }) => step);
  const problems = failing.length === 0 ? [] : [`Housekeeping fails: ${failing.join(', ')}.`];
  const isBad = problems.length > 0;
  return { heading: 'Housekeeping', content: housekeeping(steps, now), isBad, problems };
}

function housekeeping(steps: readonly HousekeepingStep[], now: Date): Markup {
  if (steps.length === 0) return emptyState('Has not run yet', 'It runs as soon as a worker starts.');
  const failing = steps.filter(({ failingSince }) => failingSince !== null);
  const healthy = steps.filter(({ failingSince }) => failingSince === null);
  const summary = `${healthy.length} of ${steps.length} steps succeeded`;
  return html`${failing.length > 0 && stepTable('Failing steps of housekeeping', failing, now)}
${healthy.length > 0 && html`<details><summary>${summary}</summary>${stepTable('Steps of housekeeping that succeeded', healthy, now)}</details>`}`;
}

function stepTable(caption: string, steps: readonly HousekeepingStep[], now: Date): Markup {
  return dataTable(
    caption,
    ['Step', { label: 'Status', kind: 'narrow' }, { label: 'Last success', kind: 'narrow' }, 'Error'],
    steps.map(({ step, succeededAt, failingSince, error }) => [
      step,
      failingSince === null ? badge('good', 'OK') : badge('bad', 'Failing'),
      timeAgo(succeededAt, now),
      error ?? '',
    ]),
  );
}

type TroubledCount = { failing: number; paused: number };

type TroubleView = {
  endpoints: readonly TroubledEndpoint[];
  counted: TroubledCount;
  waiting: ReadonlyMap<string, WaitingDeliveries>;
  errors: ReadonlyMap<string, string>;
  now: Date;
};

function endpointSection(view: TroubleView): Section {
  const { endpoints, counted } = view;
  const total = counted.failing + counted.paused;
  const rest = `The first ${endpoints.length} of ${total.toLocaleString('en-US')} are listed.`;
  return {
    heading: 'Failing, paused and disabled endpoints',
    content: html`${endpointTable(view)}${total > endpoints.length && html`<p class="faint">${rest}</p>`}`,
    isBad: counted.failing > 0,
  };
}

function endpointTable({ endpoints, waiting, errors, now }: TroubleView): Markup {
  if (endpoints.length === 0) return emptyState('None', 'All endpoints accept deliveries.');
  return dataTable(
    'Endpoints',
    [
      'Tenant',
      'Endpoint',
      { label: 'Status', kind: 'narrow' },
      { label: 'Since', kind: 'narrow' },
      { label: 'Pending', kind: 'number' },
      'Reason',
    ],
    endpoints.map((endpoint) => {
      const { id, wabaId, url, description, failingSince, modeChangedAt } = endpoint;
      const count = waiting.get(id);
      return [
        endpoint.businessName,
        html`<a class="break" href="${endpointPath(wabaId, id)}">${id}: ${description || shownUrl(url)}</a>`,
        modeBadge(endpoint),
        timeAgo(failingSince ?? modeChangedAt, now),
        count === undefined ? '–' : waitingText(count),
        troubleReason(endpoint, errors.get(id) ?? null),
      ];
    }),
  );
}

function wabaSection(wabas: readonly UnfollowedWaba[], now: Date): Section {
  const stuck = wabas.filter(({ problem }) => problem !== null).length;
  const more = wabas.length === MAX_ENDPOINTS ? 'at least ' : '';
  const problem = `The phone numbers of ${more}${stuck} WABA${stuck === 1 ? '' : 's'} cannot be updated.`;
  return {
    heading: 'WABAs whose phone numbers are not up to date',
    content: wabaTable(wabas, now),
    isBad: stuck > 0,
    problems: stuck > 0 ? [problem] : [],
  };
}

function wabaTable(wabas: readonly UnfollowedWaba[], now: Date): Markup {
  return dataTable(
    'WABAs',
    [
      'Tenant',
      { label: 'WABA', kind: 'narrow' },
      { label: 'Waiting bodies', kind: 'number' },
      { label: 'Last look-up', kind: 'narrow' },
      'Problem',
    ],
    wabas.map(({ businessName, wabaId, waiting, askedAt, problem }) => [
      businessName,
      html`<a href="/portal/operator/wabas/${wabaId}">${wabaId}</a>`,
      waiting.toLocaleString('en-US'),
      timeAgo(askedAt, now),
      problem ?? 'look-up in progress',
    ]),
  );
}

function reasonTable(reasons: readonly QuarantineTotal[]): Markup {
  if (reasons.length === 0) return emptyState('None', 'Every received item created its events.');
  return dataTable(
    'Reasons',
    [
      'Reason',
      'Field',
      { label: 'WABA', kind: 'narrow' },
      { label: 'Count', kind: 'number' },
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

type Part = { name: string; purpose: string; ok: boolean; answerMs: number };

/** Asks every part at the same time; one without a response in time counts as down. */
async function checkParts({ database, probeStore, temporal, config }: PortalContext): Promise<Part[]> {
  // It has to work for this process and for the workers, which may be elsewhere.
  const askProxy = () => requireUp(['proxy', 'workerProxy'], { config, database });
  return await Promise.all([
    check('PostgreSQL', 'stores everything', () => requireUp(['database'], { database })),
    check('Temporal', 'runs workflows', () => requireUp(['temporal'], { temporal, config })),
    check('Object store', 'stores media', () => requireUp(['objectStore'], { objectStore: probeStore })),
    ...(config.webhooks.proxy === null ? [] : [check('Egress proxy', 'carries webhooks', askProxy)]),
  ]);
}

async function check(name: string, purpose: string, ask: () => Promise<unknown>): Promise<Part> {
  const startMs = performance.now();
  const ok = await responds(ask, ANSWER_WITHIN_MS);
  return { name, purpose, ok, answerMs: performance.now() - startMs };
}
