import {
  type AlertView,
  clearOperationsUrl,
  endpointAlertsOf,
  operationsUrlOf,
  rotateOperationsSecret,
  setOperationsUrl,
} from '../../../ops/alerts/operations-url.ts';
import { PAGES } from '../access/page-access.ts';
import { badge } from '../components/badge.ts';
import { actionButton } from '../components/form.ts';
import { dataTable, emptyState } from '../components/table.ts';
import { columnTime } from '../components/time.ts';
import { action } from '../kits/action.ts';
import { formPage } from '../kits/form-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { SETTINGS_TITLE } from './endpoint-shell.ts';
import { endpointPath, urlFor } from './endpoint-status.ts';
import { secretView } from './secret-page.ts';

const LIST = '/portal/w/:wabaId/endpoints';
const PATH = `${LIST}/alerts`;
const SHOWN = 50;
const DONE = {
  saved: 'Alerts go to this URL.',
  moved: 'Alerts go to this URL. The previous server still knows the signing secret: rotate it below.',
  removed: 'Alerts are off.',
};

export function alertPages(app: PortalApp, context: PortalContext): void {
  const { accounts } = context;
  formPage(app, context, {
    path: PATH,
    access: PAGES.admin,
    seenBy: PAGES.member,
    active: 'endpoints',
    done: DONE,
    title: 'Operations URL',
    lead: 'The operations URL receives an alert when an endpoint fails, is disabled or recovers, and when deliveries failed permanently. Use another server than that of your endpoints.',
    trail: (visit) => [{ label: SETTINGS_TITLE, href: visit.at(LIST) }],
    assets: ['webhooks.css'],
    load: async ({ waba: { wabaId } }) => ({
      wabaId,
      url: await operationsUrlOf(accounts, wabaId),
      alerts: await endpointAlertsOf(accounts, wabaId, { limit: SHOWN }),
    }),
    above: ({ url }, { mayChange, viewer }) =>
      !mayChange &&
      html`<div class="card"><p>${url === null ? 'No alerts are sent.' : html`Alerts go to <code class="break">${urlFor(viewer, url)}</code>.`}</p></div>`,
    fields: [
      {
        name: 'url',
        label: 'Operations URL',
        type: 'url',
        required: true,
        limit: 4_096,
        hint: 'Must not be a webhook endpoint: alerts are not events.',
      },
    ],
    values: ({ url }) => ({ url: url ?? '' }),
    button: 'Save',
    fieldOf: () => 'url',
    submit: async (visit, given) => {
      const url = given.text('url').trim();
      const saved = await setOperationsUrl(visit.tools, visit.waba.wabaId, url);
      if (saved.secret !== null) return alertSecretView(visit, 'Alerts are on', saved.secret);
      return `${visit.path}?done=${saved.secretRotationAdvised ? 'moved' : 'saved'}`;
    },
    below: ({ wabaId, url, alerts }, { mayChange, viewer, path }) =>
      html`${mayChange && url !== null && html`<div class="buttons further">${actionButton(viewer, `${path}/rotate-secret`, 'Rotate the secret')}${actionButton(viewer, `${path}/remove`, 'Stop sending alerts', 'danger')}</div>`}
<h2>Recent alerts</h2>${alertTable(wabaId, alerts)}`,
  });
  action(app, context, {
    path: `${PATH}/rotate-secret`,
    access: PAGES.admin,
    active: 'endpoints',
    act: async (visit) => {
      const { secret } = await rotateOperationsSecret(visit.tools, visit.waba.wabaId);
      return alertSecretView(visit, 'The secret is rotated', secret ?? '');
    },
  });
  action(app, context, {
    path: `${PATH}/remove`,
    access: PAGES.admin,
    act: async (visit) => {
      await clearOperationsUrl(visit.tools, visit.waba.wabaId);
      return `${visit.at(PATH)}?done=removed`;
    },
  });
}

function alertSecretView(visit: Visit, title: string, secret: string): PageView {
  return secretView(visit, {
    title,
    secret,
    signatures: { format: 'heliograph', asymmetricSignature: 'none' },
    next: { label: 'Go to the operations URL', href: visit.at(PATH) },
    overlap: 'From the next alert on, only this secret signs.',
  });
}

const COLUMNS = [
  { label: 'Time', kind: 'time' },
  { label: 'Alert', kind: 'narrow' },
  { label: 'Endpoint', kind: 'narrow' },
  { label: 'Status', kind: 'narrow' },
  { label: 'Attempts', kind: 'number' },
  'Last error',
] as const;

const STATES = {
  waiting: badge('waiting', 'Pending'),
  delivered: badge('good', 'Delivered'),
  given_up: badge('off', 'Not sent'),
};

function alertTable(wabaId: string, alerts: readonly AlertView[]): Markup {
  if (alerts.length === 0) {
    return emptyState(
      'No alerts',
      'There was nothing to tell the operations URL so far. The bell at the top shows more kinds of alerts.',
    );
  }
  const rows = alerts.map((alert): Child[] => [
    columnTime(alert.createdAt),
    html`<code>${alert.alert}</code>`,
    alert.isEndpointDeleted
      ? `${alert.endpointId}, deleted`
      : html`<a href="${endpointPath(wabaId, alert.endpointId)}">${alert.endpointId}</a>`,
    STATES[alert.state],
    alert.attempts,
    alert.lastError ?? '–',
  ]);
  return dataTable('Alerts', COLUMNS, rows);
}
