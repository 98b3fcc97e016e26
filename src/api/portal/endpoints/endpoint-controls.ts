import { shownCount } from '../../../deliveries/shown-count.ts';
import type { EndpointStatus } from '../../../endpoints/endpoints.ts';
import type { Viewer } from '../access/viewer.ts';
import { postForm, radios, selectField, textField } from '../components/form.ts';
import { utcText } from '../components/time.ts';
import { html, type Markup } from '../markup.ts';
import { mayChange } from './endpoint-context.ts';

/** Pauses or disables an endpoint; enables one that is not on, and asks what becomes of what waits. */
export function modeControls(viewer: Viewer, path: string, endpoint: EndpointStatus): Markup {
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

const OVERLAPS = [
  { value: '24', label: '24 hours' },
  { value: '0', label: 'No overlap: the current secret ends now' },
  { value: '1', label: '1 hour' },
  { value: '72', label: '3 days' },
  { value: '168', label: '7 days' },
];

/** The secret itself is never shown here; a new one is, once. */
export function secretControls(viewer: Viewer, path: string, endpoint: EndpointStatus): Markup {
  const { previousSecretExpiresAt } = endpoint;
  const rotate = postForm(
    viewer,
    `${path}/rotate-secret`,
    html`${selectField({ label: 'The current secret stays valid for', name: 'overlapHours', value: '24', options: OVERLAPS, hint: 'Meanwhile webhooks carry the signatures of both secrets, so that you can switch without downtime.' })}
${textField({ label: 'A secret of your own', name: 'ownSecret', type: 'password', maxLength: 200, hint: 'Leave empty to generate one. Otherwise whsec_ and the base64 of 24 to 64 random bytes.' })}
<div class="buttons"><button>Rotate the secret</button></div>`,
  );
  return html`<p>It was shown once and cannot be shown again. ${previousSecretExpiresAt !== null && html`The previous secret signs too until ${utcText(previousSecretExpiresAt)}.`}</p>
${mayChange(viewer) && html`<details class="quiet"><summary>Rotate the secret</summary>${rotate}</details>`}`;
}
