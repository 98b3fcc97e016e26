import type { EndpointStatus } from '../../../accounts/endpoints.ts';
import { shownCount } from '../../../accounts/shown-count.ts';
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
    hint: 'For people; it shows in the list and in the audit log.',
  });
  const pause = mode !== 'paused' && html`<button>Pause the endpoint</button>`;
  const disable =
    mode !== 'disabled' && html`<button formaction="${path}/disable">Disable the endpoint</button>`;
  return html`<details class="quiet"><summary>Pause or disable</summary>${postForm(
    viewer,
    `${path}/pause`,
    html`${reason}<div class="buttons">${pause}${disable}</div>
<p class="faint">Either way its events are kept and wait. Paused means for a while, disabled that it is out of order.</p>`,
  )}</details>`;
}

function enableForm(viewer: Viewer, path: string, { waiting }: EndpointStatus): Markup {
  const count = shownCount(waiting);
  const one = count === '1';
  const choice =
    waiting.count === 0
      ? html`<p>Nothing waits.</p>`
      : radios({
          label: `${count} ${one ? 'event waits' : 'events wait'}`,
          name: 'waiting',
          options: [
            { value: 'send', label: `Send ${one ? 'it' : 'them'} first, in order` },
            {
              value: 'drop',
              label: `Drop ${one ? 'it' : 'them'} for good; the log keeps ${one ? 'it' : 'them'}, and a replay can send ${one ? 'it' : 'them'}`,
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
  { value: '0', label: 'Not at all: the present secret ends now' },
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
    html`${selectField({ label: 'The present secret goes on for', name: 'overlapHours', value: '24', options: OVERLAPS, hint: 'Meanwhile webhooks carry the signatures of both, so that you can change over in your own time.' })}
${textField({ label: 'A secret of your own', name: 'ownSecret', type: 'password', maxLength: 200, hint: 'Empty: one is made. Otherwise whsec_ and the base64 of 24 to 64 random bytes.' })}
<div class="buttons"><button>Change the secret</button></div>`,
  );
  return html`<p>It was shown when it was made and cannot be shown again. ${previousSecretExpiresAt !== null && html`The secret before signs too until ${utcText(previousSecretExpiresAt)}.`}</p>
${mayChange(viewer) && html`<details class="quiet"><summary>Rotate the secret</summary>${rotate}</details>`}`;
}
