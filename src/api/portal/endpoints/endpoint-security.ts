import type { EndpointStatus } from '../../../features/endpoints/endpoints.ts';
import { utcText } from '../../../platform/iso-time.ts';
import type { RequestError } from '../../../platform/request-input.ts';
import { PAGES } from '../access/page-access.ts';
import type { Viewer } from '../access/viewer.ts';
import { codeBlock } from '../components/copyable.ts';
import { postForm, selectField, textField } from '../components/form.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { certificateControls } from './client-certificate.ts';
import { ENDPOINT_PATH, endpointShell } from './endpoint-shell.ts';
import { mayChange } from './endpoint-status.ts';
import { verifySamples } from './secret-page.ts';

/** GET …/endpoints/:id/security */
export function endpointSecurityPage(app: PortalApp, context: PortalContext): void {
  viewPage(app, context, {
    path: `${ENDPOINT_PATH}/security`,
    access: PAGES.member,
    active: 'endpoints',
    view: (visit) => securityView(visit),
  });
}

export async function securityView(visit: Visit, error: RequestError | null = null): Promise<PageView> {
  const { viewer, now, waba } = visit;
  return await endpointShell(
    visit,
    'security',
    ({ endpoint, path }) => html`<h2 id="secret">Signing secret</h2>
<div class="card">${secretControls(viewer, path, endpoint)}</div>
${endpoint.asymmetricSignature !== 'none' && html`<h2 id="public-key">Public key</h2><div class="card">${publicKeyControls(viewer, path, endpoint)}</div>`}
<h2 id="client-certificate">Client certificate</h2>
<div class="card">${certificateControls(viewer, path, endpoint, now)}</div>
<h2>Verify the signature</h2>
<p class="lead">Verify it over the raw bytes, before you parse them. See also the <a href="/portal/w/${waba.wabaId}/event-types">event types</a>.</p>
${verifySamples(endpoint)}`,
    error,
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
