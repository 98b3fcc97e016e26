import { type EndpointStatus, endpointStatus } from '../../../features/endpoints/endpoints.ts';
import type { RequestError } from '../../../platform/request-input.ts';
import { mayUse } from '../access/link-access.ts';
import type { Viewer } from '../access/viewer.ts';
import { actionButton } from '../components/form.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import { endpointName, endpointPath, endpointsPath, urlFor } from './endpoint-status.ts';

export const ENDPOINT_LIST = '/portal/w/:wabaId/endpoints';
export const ENDPOINT_PATH = `${ENDPOINT_LIST}/:id`;
export const SETTINGS_TITLE = 'Webhook Settings';

const TABS = [
  ['overview', 'Overview', ''],
  ['deliveries', 'Deliveries', '/deliveries'],
  ['settings', 'Settings', '/settings'],
  ['security', 'Security', '/security'],
] as const;

export type EndpointTab = (typeof TABS)[number][0];

const doneOf = (path: string) => ({
  saved: 'The settings are saved.',
  moved: html`The settings are saved. The previous server still knows the signing secret: <a href="${path}/security#secret">rotate it</a>.`,
  'moved-without-headers': html`The settings are saved. The URL leads to another server, so your custom headers were removed: enter them again if it needs them. The previous server still knows the signing secret: <a href="${path}/security#secret">rotate it</a>.`,
  paused: 'The endpoint is paused. Its events wait.',
  disabled: 'The endpoint is disabled. Its events wait.',
  enabled: 'The endpoint is enabled.',
  retried: 'What waits for a retry is sent now, as fast as the endpoint takes it.',
  sent: 'The endpoint is enabled. Pending events are sent first, in order.',
  'key-rotated': 'The endpoint signs with a new key. Give its public key to your receivers.',
  'certificate-set': 'The certificate is set. It is shown from the next attempt on.',
  'certificate-removed': 'The certificate is removed.',
  dropped: 'The endpoint is enabled. Pending events were dropped and stay in the log.',
});

type Shown = { endpoint: EndpointStatus; path: string };

/**
 * A part of the page of an endpoint; `error` is about a form on it. Throws RequestError `unknown_endpoint`, ApiError 404.
 */
export async function endpointShell(
  visit: Visit,
  tab: EndpointTab,
  bodyOf: (shown: Shown) => Child | Promise<Child>,
  error: RequestError | null = null,
): Promise<PageView> {
  const { context, viewer } = visit;
  const { wabaId } = visit.waba;
  const endpoint = await endpointStatus(context.accounts, wabaId, visit.id);
  const path = endpointPath(wabaId, endpoint.id);
  const body = await bodyOf({ endpoint, path });
  return {
    title: endpoint.description || new URL(endpoint.url).host,
    lead: html`<code class="break">${urlFor(viewer, endpoint.url)}</code>`,
    trail: [{ label: SETTINGS_TITLE, href: endpointsPath(wabaId) }],
    actions: visit.mayChange && pageActions(viewer, path, endpoint),
    done: doneOf(path),
    notice: error && { kind: 'error', text: error.message },
    assets: ['webhooks.css'],
    body: html`${tabs(path, tab, endpointName(viewer, endpoint))}${body}`,
    error,
  };
}

function tabs(path: string, tab: EndpointTab, name: string): Markup {
  const links = TABS.map(
    ([key, label, end]) =>
      html`<a href="${path}${end}" ${key === tab && html`aria-current="page"`}>${label}</a>`,
  );
  return html`<nav class="views" aria-label="Parts of ${name}">${links}</nav>`;
}

function pageActions(viewer: Viewer, path: string, { mode, waiting }: EndpointStatus): Markup {
  const isRetryable = mode === 'open' ? waiting.retrying > 0 : mode === 'probing';
  return html`${mayUse(viewer.link, 'GET', `${path}/edit`) && html`<a class="button" href="${path}/edit">Edit</a>`}${isRetryable && actionButton(viewer, `${path}/retry`, 'Retry now')}${actionButton(viewer, `${path}/test`, 'Send test event', 'primary')}`;
}
