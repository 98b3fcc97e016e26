import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type AlertView,
  clearOperationsUrl,
  endpointAlertsOf,
  operationsUrlOf,
  rotateOperationsSecret,
  setOperationsUrl,
} from '../../../alerts/operations-url.ts';
import type { RequestError } from '../../../platform/request-input.ts';
import { PAGES } from '../access/page-access.ts';
import { orShown, sendFormPage } from '../access/page-error.ts';
import { type Viewer, viewerOf, wabaOf } from '../access/viewer.ts';
import { badge } from '../components/badge.ts';
import { actionButton, postForm, textField } from '../components/form.ts';
import { dataTable, emptyState } from '../components/table.ts';
import { exactTime } from '../components/time.ts';
import { EMPTY_FORM, formLine, formOf, formValues } from '../form-values.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { endpointPath, endpointsPath, mayChange, toolsOf, urlFor } from './endpoint-status.ts';
import { sendSecretPage } from './secret-page.ts';

const PATH = '/portal/w/:wabaId/endpoints/alerts';
const SHOWN = 50;
const DONE = {
  saved: 'Alerts go to this URL.',
  moved: 'Alerts go to this URL. The previous server still knows the signing secret: rotate it below.',
  removed: 'Alerts are off.',
};

/** /portal/w/:wabaId/endpoints/alerts: the operations URL and the alerts of the endpoints. */
export function alertPages(app: PortalApp, context: PortalContext): void {
  app.get(PATH, { config: PAGES.member }, async (request, reply) =>
    sendAlerts(request, reply, context, { url: null, error: null }),
  );
  const saving = { config: PAGES.admin, schema: { body: formOf({ url: formLine(4_096) }) } };
  app.post(PATH, saving, async (request, reply) => {
    const { wabaId } = wabaOf(request);
    const url = formValues(request.body).text('url').trim();
    return await orShown(
      async () => {
        const { secret, secretRotationAdvised } = await setOperationsUrl(
          toolsOf(request, context),
          wabaId,
          url,
        );
        if (secret !== null) return sendAlertSecret(request, reply, 'Alerts are on', secret);
        return reply.redirect(
          `${endpointsPath(wabaId)}/alerts?done=${secretRotationAdvised ? 'moved' : 'saved'}`,
          303,
        );
      },
      (error) => sendAlerts(request, reply, context, { url, error }),
    );
  });
  const empty = { config: PAGES.admin, schema: { body: EMPTY_FORM } };
  app.post(`${PATH}/rotate-secret`, empty, async (request, reply) => {
    const { wabaId } = wabaOf(request);
    const { secret } = await rotateOperationsSecret(toolsOf(request, context), wabaId);
    return sendAlertSecret(request, reply, 'The secret is rotated', secret ?? '');
  });
  app.post(`${PATH}/remove`, empty, async (request, reply) => {
    const { wabaId } = wabaOf(request);
    await clearOperationsUrl(toolsOf(request, context), wabaId);
    return reply.redirect(`${endpointsPath(wabaId)}/alerts?done=removed`, 303);
  });
}

function sendAlertSecret(
  request: FastifyRequest,
  reply: FastifyReply,
  title: string,
  secret: string,
): FastifyReply {
  return sendSecretPage(request, reply, {
    title,
    secret,
    signatures: { format: 'heliograph', signatureProfile: 'standard', asymmetricSignature: 'none' },
    next: { label: 'Go to the operations URL', href: `${endpointsPath(wabaOf(request).wabaId)}/alerts` },
    overlap: 'From the next alert on, only this secret signs.',
  });
}

async function sendAlerts(
  request: FastifyRequest,
  reply: FastifyReply,
  { accounts }: PortalContext,
  { url, error }: { url: string | null; error: RequestError | null },
): Promise<FastifyReply> {
  const waba = wabaOf(request);
  const viewer = viewerOf(request);
  const [stored, alerts] = await Promise.all([
    operationsUrlOf(accounts, waba.wabaId),
    endpointAlertsOf(accounts, waba.wabaId, { limit: SHOWN }),
  ]);
  const path = endpointsPath(waba.wabaId);
  const view = {
    title: 'Operations URL',
    active: 'endpoints',
    lead: 'The operations URL receives an alert when an endpoint fails, is disabled or recovers, and when deliveries failed permanently. Use another server than that of your endpoints.',
    trail: [{ label: 'Webhook endpoints', href: path }],
    assets: ['webhooks.css'],
    done: DONE,
    body: html`<div class="card">${operationsUrl(viewer, `${path}/alerts`, { stored, url, error })}</div>
<h2>Recent alerts</h2>${alertTable(waba.wabaId, alerts)}`,
  };
  return sendFormPage(reply, view, error);
}

function operationsUrl(
  viewer: Viewer,
  path: string,
  { stored, url, error }: { stored: string | null; url: string | null; error: RequestError | null },
): Markup {
  if (!mayChange(viewer)) {
    return html`<p>${stored === null ? 'No alerts are sent.' : html`Alerts go to <code class="break">${urlFor(viewer, stored)}</code>.`}</p>`;
  }
  const field = textField({
    label: 'Operations URL',
    name: 'url',
    type: 'url',
    value: url ?? stored ?? '',
    required: true,
    hint: 'Must not be a webhook endpoint: alerts are not events.',
    error: error?.message ?? null,
  });
  const form = postForm(
    viewer,
    path,
    html`${field}<div class="buttons"><button class="primary">Save</button></div>`,
  );
  if (stored === null) return form;
  return html`${form}<div class="buttons further">${actionButton(viewer, `${path}/rotate-secret`, 'Rotate the secret')}${actionButton(viewer, `${path}/remove`, 'Stop sending alerts', 'danger')}</div>`;
}

const COLUMNS = [
  { label: 'Time', kind: 'narrow' },
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
    exactTime(alert.createdAt),
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
