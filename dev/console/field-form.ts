import type { Viewer } from '../../src/api/portal/access/viewer.ts';
import { html, type Markup, nothing } from '../../src/api/portal/markup.ts';
import { KNOWN_FIELDS, UPSTREAM_FIELDS } from '../../src/platform/upstream-fields.ts';
import { choiceFields } from './composer.ts';
import { mayPlay } from './console-choice.ts';
import type { ConsoleState } from './console-state.ts';
import { CustomerFormError } from './customer-messages.ts';

/** A form has up to 64 KiB, in which a character takes up to nine bytes. */
export const MAX_VALUE_CHARS = 7_000;

/** What the platform reports in another webhook field than messages: the sample of the event catalogue, or a value of one's own. */
export function fieldForm(viewer: Viewer, { choice }: ConsoleState): Markup {
  if (!mayPlay(viewer)) return nothing;
  return html`<details class="card field-form"><summary>Report a change as the platform</summary>
<form method="post" action="/portal/sandbox/fields" data-console>${choiceFields(viewer, choice)}
<label for="field">Webhook field</label>
<select id="field" name="field">${KNOWN_FIELDS.map((field) => html`<option value="${field}">${field} – ${UPSTREAM_FIELDS[field]}</option>`)}</select>
<label for="value">Value as JSON <span class="faint">(the sample of the event catalogue unless you write one)</span></label>
<textarea id="value" name="value" rows="4" maxlength="${MAX_VALUE_CHARS}" spellcheck="false"></textarea>
<p class="hint">Endpoints receive it if their event types have <code>upstream.&lt;field&gt;</code> or <code>upstream.*</code>: <a href="/portal/w/${choice.number.wabaId}/endpoints">Webhooks</a>. Groups, calls, echoes and history also change <a href="/portal/w/${choice.number.wabaId}/conversations">conversations</a>.</p>
<button>Send</button> <span role="status" data-done hidden>Reported.</span>
</form></details>`;
}

/** The request to the sandbox for a form. Throws CustomerFormError. */
export function fieldChange(
  { field, value }: { field: string; value: string },
  phoneNumberId: string,
): Record<string, unknown> {
  if (!KNOWN_FIELDS.some((known) => known === field)) throw new CustomerFormError('There is no such field.');
  if (value.trim() === '') return { field, phoneNumberId };
  try {
    return { field, phoneNumberId, value: JSON.parse(value) as unknown };
  } catch {
    throw new CustomerFormError('The value is not JSON.');
  }
}
