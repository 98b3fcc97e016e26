import type { TProperties } from 'typebox';
import { shownCount } from '../../../engine/queue/waiting.ts';
import { setClientCertificate } from '../../../features/endpoints/endpoint-certificate.ts';
import { deleteEndpoint, enableEndpoint, holdEndpoint } from '../../../features/endpoints/endpoint-modes.ts';
import { rotateSecret, rotateSigningKey } from '../../../features/endpoints/endpoint-secrets.ts';
import { endpointStatus } from '../../../features/endpoints/endpoints.ts';
import { retryEndpoint } from '../../../features/endpoints/retry-now.ts';
import { utcText } from '../../../platform/iso-time.ts';
import { invalidValue } from '../../../platform/request-input.ts';
import { PAGES } from '../access/page-access.ts';
import { type FormValues, formLine } from '../form-values.ts';
import { action } from '../kits/action.ts';
import { confirmationPage } from '../kits/confirmation-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { endpointView } from './endpoint-page.ts';
import { securityView } from './endpoint-security.ts';
import { ENDPOINT_LIST, ENDPOINT_PATH, SETTINGS_TITLE } from './endpoint-shell.ts';
import { endpointsPath, urlFor } from './endpoint-status.ts';
import { secretView } from './secret-page.ts';

type Button = {
  /** The last part of its path. */
  name: string;
  /** On the tab of that name. Left out: on the first one. */
  tab?: 'security';
  fields?: TProperties;
  /** Returns the name of the notice that the page of the endpoint shows, or a page. */
  act: (visit: Visit, given: FormValues) => Promise<string | PageView>;
};

export function endpointActions(app: PortalApp, context: PortalContext): void {
  for (const { name, tab, fields = {}, act } of BUTTONS) {
    action(app, context, {
      path: `${ENDPOINT_PATH}/${name}`,
      access: PAGES.admin,
      active: 'endpoints',
      fields,
      act: async (visit, given) => {
        const next = await act(visit, given);
        return typeof next === 'string'
          ? `${visit.at(ENDPOINT_PATH)}${tab === undefined ? '' : `/${tab}`}?done=${next}`
          : next;
      },
      refused: async (visit, error) => {
        // An endpoint that is not there has no page to show it on.
        if (error.code.startsWith('unknown_')) throw error;
        return await (tab === 'security' ? securityView : endpointView)(visit, error);
      },
    });
  }
  endpointDeletePage(app, context);
}

const BUTTONS: readonly Button[] = [
  { name: 'pause', fields: { reason: formLine() }, act: (...sent) => hold('paused', ...sent) },
  { name: 'disable', fields: { reason: formLine() }, act: (...sent) => hold('disabled', ...sent) },
  {
    name: 'enable',
    fields: { waiting: formLine() },
    act: async ({ tools, waba, id, viewer }, given) => {
      const waiting = waitingChoice(given.text('waiting'));
      await enableEndpoint(tools, waba.wabaId, { id, waiting, by: viewer.email });
      return waiting === 'send' ? 'sent' : waiting === 'drop' ? 'dropped' : 'enabled';
    },
  },
  {
    name: 'retry',
    act: async ({ tools, waba, id }) => {
      await retryEndpoint(tools, waba.wabaId, id);
      return 'retried';
    },
  },
  {
    name: 'rotate-secret',
    tab: 'security',
    fields: { overlapHours: formLine(), ownSecret: formLine() },
    act: rotateSecretNow,
  },
  {
    // That page shows the new public key.
    name: 'rotate-signing-key',
    tab: 'security',
    fields: { keyOverlapHours: formLine() },
    act: async ({ tools, waba, id }, given) => {
      const overlapHours = overlapIn(given, 'keyOverlapHours');
      await rotateSigningKey(tools, waba.wabaId, id, { overlapHours });
      return 'key-rotated';
    },
  },
  {
    name: 'client-certificate',
    tab: 'security',
    fields: { certificate: formLine(65_536), privateKey: formLine(65_536) },
    act: async ({ tools, waba, id }, given) => {
      const pair = { certificate: given.text('certificate'), privateKey: given.text('privateKey') };
      await setClientCertificate(tools, waba.wabaId, id, pair);
      return 'certificate-set';
    },
  },
  {
    name: 'client-certificate/remove',
    tab: 'security',
    act: async ({ tools, waba, id }) => {
      await setClientCertificate(tools, waba.wabaId, id, null);
      return 'certificate-removed';
    },
  },
];

async function hold(
  mode: 'paused' | 'disabled',
  { tools, waba, id }: Visit,
  given: FormValues,
): Promise<string> {
  await holdEndpoint(tools, waba.wabaId, { id, mode, reason: given.text('reason') });
  return mode;
}

function waitingChoice(text: string): 'send' | 'drop' | null {
  if (text === 'send' || text === 'drop') return text;
  if (text === '') return null;
  throw invalidValue('Choose whether the pending events are sent or dropped.');
}

/** The response shows the new secret, once. */
async function rotateSecretNow(visit: Visit, given: FormValues): Promise<PageView> {
  const { tools, id, context } = visit;
  const { wabaId } = visit.waba;
  const overlapHours = overlapIn(given, 'overlapHours');
  const own = given.text('ownSecret').trim();
  const rotated = await rotateSecret(tools, wabaId, id, { overlapHours, ...(own !== '' && { secret: own }) });
  const until = rotated.previousSecretExpiresAt;
  return secretView(visit, {
    title: 'The secret is rotated',
    secret: rotated.secret,
    signatures: await endpointStatus(context.accounts, wabaId, id),
    next: { label: 'Go to the endpoint', href: visit.at(ENDPOINT_PATH) },
    overlap:
      until === null
        ? 'The previous secret has ended: only this one signs.'
        : html`The previous secret also signs until ${utcText(until)}.`,
  });
}

function overlapIn(form: FormValues, field: string): number {
  const hours = form.text(field);
  return /^\d{1,3}$/.test(hours) ? Number(hours) : Number.NaN;
}

function endpointDeletePage(app: PortalApp, context: PortalContext): void {
  confirmationPage(app, context, {
    path: `${ENDPOINT_PATH}/delete`,
    access: PAGES.admin,
    active: 'endpoints',
    load: async ({ waba, id }) => await endpointStatus(context.accounts, waba.wabaId, id),
    title: () => 'Delete this endpoint?',
    trail: (visit, { id, description, wabaId }) => [
      { label: SETTINGS_TITLE, href: endpointsPath(wabaId) },
      { label: description || `Endpoint ${id}`, href: visit.at(ENDPOINT_PATH) },
    ],
    body: ({ url, waiting }, { viewer }) => {
      const count = shownCount(waiting);
      return html`<p><code class="break">${urlFor(viewer, url)}</code></p>
<p>${waiting.count === 0 ? 'It has no pending events.' : html`<strong>${count}</strong> pending ${count === '1' ? 'event is' : 'events are'} dropped.`} Its signing secret is deleted. The log of its deliveries stays.</p>
<p>To stop it for a short time, pause it instead.</p>`;
    },
    button: 'Delete',
    act: async (visit) => {
      await deleteEndpoint(visit.tools, visit.waba.wabaId, visit.id);
      return `${visit.at(ENDPOINT_LIST)}?done=deleted`;
    },
  });
}
