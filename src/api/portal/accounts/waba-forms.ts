import type { TargetLists } from '../../../platform/http/outbound-url.ts';
import type { Viewer } from '../access/viewer.ts';
import { postForm, textArea, textField } from '../components/form.ts';
import { html, type Markup } from '../markup.ts';

const TOKEN_FIELD = {
  label: 'Access token',
  name: 'accessToken',
  type: 'password',
  required: true,
  maxLength: 4_096,
  hint: 'Of a system user with whatsapp_business_messaging and whatsapp_business_management. It is checked against upstream at once, kept encrypted and never shown again.',
} as const;

/** Adds a WABA to a tenant; its numbers come from upstream. */
export function addWabaForm(
  viewer: Viewer,
  tenantId: string,
  { wabaId, error }: { wabaId: string; error: string | null },
): Markup {
  const id = {
    label: 'WABA id',
    name: 'wabaId',
    value: wabaId,
    hint: 'Digits only, as WhatsApp Manager shows it.',
  };
  const fields = html`${textField({ ...id, error, required: true, maxLength: 64 })}${textField(TOKEN_FIELD)}
<button class="primary">Check and add the WABA</button>`;
  return postForm(viewer, `/portal/operator/tenants/${tenantId}/wabas`, fields);
}

/** Shown after a token was saved. */
export const TOKEN_SAVED = 'Upstream accepted the token; the WABA and its numbers are saved.';

/** Gives a WABA another token, and copies its numbers from upstream; `from` is the page that shows the result. */
export function tokenForm(
  viewer: Viewer,
  wabaId: string,
  { error, from }: { error: string | null; from: 'waba' | 'set-up' },
): Markup {
  const fields = html`<input type="hidden" name="from" value="${from}">${textField({ ...TOKEN_FIELD, error })}<button class="primary">Check and save the token</button>`;
  return postForm(viewer, `/portal/operator/wabas/${wabaId}/access-token`, fields);
}

/** Where webhooks and alerts of a WABA may go; `error` is about the lists as they are given. */
export function targetForm(
  viewer: Viewer,
  wabaId: string,
  { allow, deny, error }: TargetLists & { error: string | null },
): Markup {
  const fields = html`${textArea({ label: 'Only to', name: 'allow', rows: 3, value: allow.join('\n'), error, hint: 'One per line: host, *.domain, IP or CIDR, optionally with :port. Empty: anywhere that the installation allows.' })}
${textArea({ label: 'Not to', name: 'deny', rows: 3, value: deny.join('\n'), hint: 'As above; this list overrides the other.' })}
<div class="buttons"><button>Save the targets</button></div>`;
  return postForm(viewer, `/portal/operator/wabas/${wabaId}/targets`, fields);
}
