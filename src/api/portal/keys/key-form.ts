import { type Static, Type } from 'typebox';
import type { ApiKeyDetails } from '../../../keys/api-key-admin.ts';
import { API_KEY_SCOPES, type ApiKeyScope } from '../../../keys/api-key-scopes.ts';
import type { GivenKeyRequest } from '../../../keys/key-request-input.ts';
import type { AccountError } from '../../../platform/account-error.ts';
import { formLine } from '../access/form-schema.ts';
import type { Viewer } from '../access/viewer.ts';
import { checkboxes, postForm, selectField, textField } from '../components/form.ts';
import { html, type Markup } from '../markup.ts';

/** The fields of the form by which a key is asked for. */
export const KeyForm = Type.Object({
  purpose: formLine(),
  scopes: Type.Optional(Type.Union([formLine(), Type.Array(formLine(), { maxItems: 20 })])),
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
  send: 'send: messages to customers',
  manage_webhooks: 'manage_webhooks: endpoints, secrets, replays',
};

/** What the form says, for the service; what is no number is refused there. */
export function keyRequestOfForm(form: KeyForm): GivenKeyRequest {
  const replacesKeyId = form.replacesKeyId || null;
  return {
    purpose: form.purpose,
    scopes: scopesOf(form),
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

/** The form as it is when it is opened: all scopes, 90 days. */
export function emptyKeyForm(replaced: ApiKeyDetails | null): KeyForm {
  return {
    purpose: replaced?.name ?? '',
    scopes: replaced?.scopes ?? [...API_KEY_SCOPES],
    validDays: '90',
    replacesKeyId: replaced?.id ?? '',
    overlapHours: '168',
  };
}

/** The form by which a key is asked for; `keys` are those that it could replace. */
export function keyForm(
  viewer: Viewer,
  action: string,
  view: { form: KeyForm; keys: readonly ApiKeyDetails[]; error: AccountError | null },
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
${selectField({ label: 'Lifetime', name: 'validDays', value: form.validDays, options: VALID, hint: 'Starts when the key is shown.', error: about('validDays') })}
${replaceable.length > 0 && replace}
<div class="buttons"><button class="primary">Request the key</button></div>`,
  );
}
