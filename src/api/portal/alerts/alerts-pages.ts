import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { saveAlertMail } from '../../../features/users/user-store.ts';
import { ALERT_KINDS, alertPath, anchorOf, KINDS, kindsFor } from '../../../ops/alerts/alert-kinds.ts';
import { alertMailOf } from '../../../ops/alerts/alert-mails.ts';
import { listAlerts, markAlertsRead } from '../../../ops/alerts/alerts.ts';
import { PAGES, withoutFreshProof } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { alertViewerOf, isOperatorElsewhere, type Viewer, viewerOf } from '../access/viewer.ts';
import { badge } from '../components/badge.ts';
import { actionButton, postForm } from '../components/form.ts';
import { pager } from '../components/pager.ts';
import { dataTable, emptyState } from '../components/table.ts';
import { exactTime, timeAgo } from '../components/time.ts';
import { formLine } from '../form-values.ts';
import { action } from '../kits/action.ts';
import { viewPage } from '../kits/view-page.ts';
import { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup, nothing } from '../markup.ts';
import { hrefWith } from '../navigation.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

const PATH = '/portal/alerts';
const RUNBOOKS = '/portal/runbooks';
const PAGE_SIZE = 50;
const IS_UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const UUID = IS_UUID.source;

const DONE = {
  read: 'Marked as read. You are not reminded of it any more.',
  on: 'You get e-mails about new alerts.',
  off: 'You get no e-mails about alerts.',
};

const querystring = Type.Object({
  done: Type.Optional(Type.String()),
  state: Type.Optional(Type.Union([Type.Literal('open'), Type.Literal('all')])),
  before: Type.Optional(Type.String({ pattern: UUID })),
});

/** /portal/alerts: what needs attention in the tenant of the session, or everywhere; /portal/runbooks: what to do. */
export function alertsPages(app: PortalApp, context: PortalContext): void {
  const { database } = context;
  app.get(PATH, { config: PAGES.signedIn, schema: { querystring } }, async (request, reply) =>
    sendPage(reply, await alertsView(new Visit(request, reply, context), request.query)),
  );
  action(app, context, {
    path: `${PATH}/read`,
    access: withoutFreshProof(PAGES.signedIn, 'the alert stays in the list of all users'),
    fields: { alert: formLine() },
    act: async ({ request }, given) => {
      const alert = given.text('alert');
      if (alert !== '' && !IS_UUID.test(alert)) throw pageNotFound();
      await markAlertsRead(database, alertViewerOf(readerOf(request)), alert === '' ? null : alert);
      return `${PATH}?done=read`;
    },
  });
  action(app, context, {
    path: `${PATH}/mail`,
    access: PAGES.signedIn,
    fields: { mail: formLine() },
    act: async ({ request }, given) => {
      const isWanted = given.text('mail') === 'on';
      await saveAlertMail(database, readerOf(request).userId, isWanted);
      return `${PATH}?done=${isWanted ? 'on' : 'off'}`;
    },
  });
  viewPage(app, context, {
    path: RUNBOOKS,
    access: PAGES.signedIn,
    active: 'alerts',
    view: ({ request }) => ({
      title: 'Runbooks',
      lead: 'What each alert means and what to do.',
      trail: [{ label: 'Alerts', href: PATH }],
      body: runbooks(readerOf(request)),
    }),
  });
}

function readerOf(request: FastifyRequest): Viewer {
  const viewer = viewerOf(request);
  if (isOperatorElsewhere(viewer)) throw pageNotFound();
  return viewer;
}

async function alertsView(
  { request, context, now }: Visit,
  { state = 'open', before = null }: { state?: 'open' | 'all'; before?: string | null },
): Promise<PageView> {
  const { database, config } = context;
  const viewer = readerOf(request);
  const [rows, hasMail] = await Promise.all([
    listAlerts(database, alertViewerOf(viewer), { state, before, limit: PAGE_SIZE + 1 }),
    config.mail.smtpUrl === '' ? null : alertMailOf(database, viewer.userId),
  ]);
  const alerts = rows.slice(0, PAGE_SIZE);
  const last = rows.length > PAGE_SIZE ? alerts.at(-1) : undefined;
  const pages = pager({
    firstHref: before === null ? null : hrefWith(PATH, { state }),
    nextHref: last === undefined ? null : hrefWith(PATH, { state, before: last.id }),
  });
  const isNew = alerts.some((alert) => alert.isNew);
  return {
    title: 'Alerts',
    active: 'alerts',
    lead:
      viewer.tenantId === null
        ? 'What needs attention, of the installation and of all tenants. The bell counts what is new: what operators can fix and you have not read.'
        : 'What needs attention. The bell counts what you have not read.',
    actions: isNew && actionButton(viewer, `${PATH}/read`, 'Mark all as read'),
    done: DONE,
    body: html`${states(state)}
${alerts.length === 0 ? none(state) : alertTable(viewer, alerts, now)}${pages}
${hasMail !== null && mailSection(viewer, hasMail)}`,
  };
}

function states(state: 'open' | 'all'): Markup {
  const link = (to: 'open' | 'all', label: string) =>
    html`<a href="${hrefWith(PATH, { state: to })}" ${to === state && html`aria-current="page"`}>${label}</a>`;
  return html`<nav class="views" aria-label="Which alerts">${link('open', 'Open')} ${link('all', 'All')}</nav>`;
}

function none(state: 'open' | 'all'): Markup {
  return state === 'open'
    ? emptyState(
        'No open alerts',
        'Nothing needs attention.',
        html`<a href="${RUNBOOKS}">Which alerts there are</a>`,
      )
    : emptyState('No alerts', 'There were none in the last 90 days.');
}

const COLUMNS = [{ label: 'Status', kind: 'narrow' }, 'Alert'] as const;

type Alerts = Awaited<ReturnType<typeof listAlerts>>;

function alertTable(viewer: Viewer, alerts: Alerts, now: Date): Markup {
  const isOperator = viewer.role === 'operator';
  const rows = alerts.map((alert): Child[] => [
    html`${stateOf(alert)}<br><span class="faint">${timeAgo(alert.openedAt, now)}</span>`,
    html`<div class="with-action"><div><a href="${alertPath(alert, isOperator)}"><strong>${KINDS[alert.kind].title}</strong></a>${isOperator && html` <span class="faint">${alert.businessName ?? 'Installation'}</span>`}<br>${alert.reason} <a href="${RUNBOOKS}#${anchorOf(alert.kind)}">Runbook</a>${ending(alert)}</div>${alert.isNew && readForm(viewer, alert.id)}</div>`,
  ]);
  return dataTable('Alerts', COLUMNS, rows);
}

function stateOf({ kind, isNew, resolvedAt }: Alerts[number]): Markup {
  if (resolvedAt !== null) return badge('good', 'Resolved');
  if (KINDS[kind].isNotice) return badge('neutral', isNew ? 'New notice' : 'Notice');
  return isNew ? badge('bad', 'New') : badge('waiting', 'Open');
}

function ending({ resolvedAt, resolvedBy }: Alerts[number]): Child {
  if (resolvedAt === null) return nothing;
  return html`<br><span class="faint">Resolved ${exactTime(resolvedAt)}${resolvedBy !== null && ' by an operator'}</span>`;
}

function readForm(viewer: Viewer, id: string): Markup {
  const button = html`<input type="hidden" name="alert" value="${id}"><button class="secondary">Mark as read</button>`;
  return postForm(viewer, `${PATH}/read`, button);
}

function mailSection(viewer: Viewer, isOn: boolean): Markup {
  const text = isOn
    ? 'You get an e-mail when there are new alerts, at most once an hour, and a reminder once a day while you have not marked them as read.'
    : 'You get no e-mails about alerts.';
  const form = postForm(
    viewer,
    `${PATH}/mail`,
    html`<input type="hidden" name="mail" value="${isOn ? 'off' : 'on'}"><button class="secondary">${isOn ? 'Stop these e-mails' : 'Send me e-mails'}</button>`,
  );
  return html`<h2>E-mail</h2><p>${text}</p>${form}`;
}

function runbooks(viewer: Viewer): Markup {
  const own = viewer.role === 'operator' ? ALERT_KINDS : kindsFor('tenant');
  return html`${own.map((kind) => {
    const { title, meaning, steps } = KINDS[kind];
    return html`<section id="${anchorOf(kind)}" class="card"><h2>${title}</h2><p>${meaning}</p><ol>${steps.map((step) => html`<li>${step}</li>`)}</ol></section>
`;
  })}`;
}
