import { type Static, Type } from 'typebox';
import { API_KEY_SCOPES, type ApiKeyScope, LEAST_SCOPES } from '../../../keys/api-key.ts';
import type { ApiKeyDetails } from '../../../keys/api-key-store.ts';
import type { GivenKeyRequest } from '../../../keys/key-requests.ts';
import type { RequestError } from '../../../platform/request-input.ts';
import type { Viewer } from '../access/viewer.ts';
import { checkboxes, postForm, selectField, textArea, textField } from '../components/form.ts';
import { formLine, linesOf } from '../form-values.ts';
import { html, type Markup } from '../markup.ts';

/** The field for the networks from which a key may be used. */
export function networkField(value: string, error: string | null): Markup {
  return textArea({
    label: 'Allowed networks',
    name: 'allowedNetworks',
    rows: 3,
    value,
    hint: 'Addresses or networks such as 192.0.2.0/24, one to a line. Empty: the key can be used from anywhere.',
    error,
  });
}

/** The fields of the form by which a key is asked for. */
export const KeyForm = Type.Object({
  purpose: formLine(),
  scopes: Type.Optional(Type.Union([formLine(), Type.Array(formLine(), { maxItems: 20 })])),
  allowedNetworks: Type.Optional(Type.String({ maxLength: 4_096 })),
  validDays: formLine(),
  replacesKeyId: Type.Optional(formLine()),
  overlapHours: Type.Optional(formLine()),
});

export type KeyForm = Static<typeof KeyForm>;

const VALID = [
  { value: '90', label: '90 days' },
  { value: '30', label: '30 days' },
  { value: '180', label: '180 days' },
  { value: '365', label: '1 year' },
  { value: '', label: 'until revoked' },
];

const OVERLAPS = [
  { value: '24', label: 'ends 24 hours after the new one is shown' },
  { value: '168', label: 'ends 7 days after the new one is shown' },
  { value: '720', label: 'ends 30 days after the new one is shown' },
  { value: '0', label: 'ends at once when the new one is shown' },
  { value: '', label: 'stays valid until it is revoked' },
];

const SCOPE_LABELS: Readonly<Record<ApiKeyScope, string>> = {
  read: 'read: conversations, messages, media, events',
  read_events: 'read_events: events with their bodies, nothing else',
  send: 'send: messages to customers',
  manage_webhooks: 'manage_webhooks: endpoints, secrets, replays',
  export: 'export: all data of a customer as one archive',
  erase: 'erase: customers and conversations, permanently',
  graph: 'graph: the WhatsApp Cloud API, for software that speaks it',
};

/** What the form says, for the service; what is no number is refused there. */
export function keyRequestOfForm(form: KeyForm): GivenKeyRequest {
  const replacesKeyId = form.replacesKeyId || null;
  return {
    purpose: form.purpose,
    scopes: scopesOf(form),
    allowedNetworks: linesOf(form.allowedNetworks ?? ''),
    validDays: numberOf(form.validDays),
    replacesKeyId,
    overlapHours: replacesKeyId === null ? null : numberOf(form.overlapHours ?? ''),
  };
}

function scopesOf({ scopes = [] }: Pick<KeyForm, 'scopes'>): string[] {
  return [scopes].flat();
}

function numberOf(text: string): number | null {
  return text === '' ? null : Number(text);
}

/** The form as it is when it is opened: the least scopes, 90 days; for a replacement, what the key before may do. */
export function emptyKeyForm(replaced: ApiKeyDetails | null): KeyForm {
  return {
    purpose: replaced?.name ?? '',
    scopes: replaced?.scopes ?? [...LEAST_SCOPES],
    allowedNetworks: replaced?.allowedNetworks?.join('\n') ?? '',
    validDays: '90',
    replacesKeyId: replaced?.id ?? '',
    overlapHours: '168',
  };
}

/** The form by which a key is asked for; `keys` are those that it could replace. */
export function keyForm(
  viewer: Viewer,
  action: string,
  view: { form: KeyForm; keys: readonly ApiKeyDetails[]; error: RequestError | null },
): Markup {
  const { form, keys, error } = view;
  const about = (field: string) => (error?.param === field ? error.message : null);
  const replaceable = keys.filter(({ state }) => state === 'active');
  const options = [
    { value: '', label: 'none: a new key' },
    ...replaceable.map(({ id, name, prefix, lastFour }) => ({
      value: id,
      label: `${name} (${prefix}…${lastFour})`,
    })),
  ];
  const replace = html`${selectField({ label: 'Replaces', name: 'replacesKeyId', value: form.replacesKeyId ?? '', options, hint: 'Both keys work at first, so that your systems can switch without downtime.', error: about('replacesKeyId') })}
${selectField({ label: 'The replaced key', name: 'overlapHours', value: form.overlapHours ?? '', options: OVERLAPS, error: about('overlapHours') })}`;
  return postForm(
    viewer,
    action,
    html`${textField({ label: 'Purpose', name: 'purpose', value: form.purpose, required: true, maxLength: 200, placeholder: 'order system, production', hint: 'Shown to the operator. It becomes the name of the key.', error: about('purpose') })}
${checkboxes({ label: 'Scopes', name: 'scopes', values: scopesOf(form), options: API_KEY_SCOPES.map((value) => ({ value, label: SCOPE_LABELS[value] })), error: about('scopes') })}
${networkField(form.allowedNetworks ?? '', about('allowedNetworks'))}
${selectField({ label: 'Lifetime', name: 'validDays', value: form.validDays, options: VALID, hint: 'Starts when the key is shown.', error: about('validDays') })}
${replaceable.length > 0 && replace}
<div class="buttons"><button class="primary">Request the key</button></div>`,
  );
}
