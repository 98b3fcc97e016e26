import { API_KEY_SCOPES, type ApiKeyScope, LEAST_SCOPES } from '../../../features/keys/api-key.ts';
import type { ApiKeyDetails } from '../../../features/keys/api-key-store.ts';
import type { GivenKeyRequest } from '../../../features/keys/key-requests.ts';
import { KEY_RECIPIENTS, type SendLimits } from '../../../features/keys/send-limits.ts';
import { linesOf } from '../form-values.ts';
import type { FormField } from '../kits/form-fields.ts';
import type { Given } from '../kits/form-page.ts';

export const NETWORKS = {
  name: 'allowedNetworks',
  label: 'Allowed networks',
  widget: 'lines',
  rows: 3,
  limit: 4_096,
  hint: 'Addresses or networks such as 192.0.2.0/24, one to a line. Empty: the key can be used from anywhere.',
} as const;

const RECIPIENT_LABELS: Readonly<Record<SendLimits['recipients'], string>> = {
  any: 'any',
  open_conversations: 'only open conversations: those who wrote within 24 hours',
};

/** What the key may send: asked for by the tenant, and granted or changed by the operator who approves. */
export const SEND_LIMIT_FIELDS: FormField<keyof SendLimits, unknown>[] = [
  {
    name: 'maxMessagesPerDay',
    label: 'Messages per day',
    type: 'number',
    mayBeMissing: true,
    hint: 'How many messages the key may send on one UTC day. Empty: no limit.',
  },
  {
    name: 'recipients',
    label: 'Recipients',
    widget: 'list',
    mayBeMissing: true,
    options: KEY_RECIPIENTS.map((value) => ({ value, label: RECIPIENT_LABELS[value] })),
  },
];

export function sendLimitValues(limits: SendLimits): Record<keyof SendLimits, string> {
  const { maxMessagesPerDay, recipients } = limits;
  return { maxMessagesPerDay: maxMessagesPerDay === null ? '' : String(maxMessagesPerDay), recipients };
}

/** The limits of a form; what it lacks is left out. */
export function sendLimitsOfForm({ list }: Given<keyof SendLimits>) {
  const [most] = list('maxMessagesPerDay');
  const [recipients] = list('recipients');
  return {
    ...(most !== undefined && { maxMessagesPerDay: numberOf(most) }),
    ...(recipients !== undefined && { recipients }),
  };
}

/** How long a key may be valid, in days. */
export const VALID = [
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

export const SCOPE_LABELS: Readonly<Record<ApiKeyScope, string>> = {
  read: 'read: conversations, messages, media, events',
  read_events: 'read_events: events with their bodies, nothing else',
  send: 'send: messages to customers',
  manage_webhooks: 'manage_webhooks: endpoints, secrets, replays',
  export: 'export: all data of a customer as one archive',
  erase: 'erase: customers and conversations, permanently',
  graph: 'graph: the WhatsApp Cloud API, for software that speaks it: sending, files, reading',
  graph_manage: 'graph_manage: changes by it: templates, profile, flows, their keys',
  graph_query: 'graph_query: the key may stand in the query of its addresses, which logs keep',
};

export type Replaceable = { keys: readonly ApiKeyDetails[]; replaced: ApiKeyDetails | null };

type Name =
  | keyof SendLimits
  | 'purpose'
  | 'scopes'
  | 'allowedNetworks'
  | 'validDays'
  | 'replacesKeyId'
  | 'overlapHours';

const hasKeys = ({ keys }: Replaceable) => keys.length > 0;

export const KEY_FIELDS: FormField<Name, Replaceable>[] = [
  {
    name: 'purpose',
    label: 'Purpose',
    required: true,
    maxLength: 200,
    placeholder: 'order system, production',
    hint: 'Shown to the operator. It becomes the name of the key.',
  },
  {
    name: 'scopes',
    label: 'Scopes',
    widget: 'ticks',
    options: API_KEY_SCOPES.map((value) => ({ value, label: SCOPE_LABELS[value] })),
  },
  { ...NETWORKS, mayBeMissing: true },
  ...SEND_LIMIT_FIELDS,
  {
    name: 'validDays',
    label: 'Lifetime',
    widget: 'list',
    options: VALID,
    hint: 'Starts when the key is shown.',
  },
  {
    name: 'replacesKeyId',
    label: 'Replaces',
    widget: 'list',
    isShown: hasKeys,
    options: ({ keys }) => [
      { value: '', label: 'none: a new key' },
      ...keys.map(({ id, name, prefix, lastFour }) => ({
        value: id,
        label: `${name} (${prefix}…${lastFour})`,
      })),
    ],
    hint: 'Both keys work at first, so that your systems can switch without downtime.',
  },
  { name: 'overlapHours', label: 'The replaced key', widget: 'list', isShown: hasKeys, options: OVERLAPS },
];

/** The form as it is when it is opened: the least scopes, 90 days; for a replacement, what the key before may do. */
export function firstValues({ replaced }: Replaceable): Partial<Record<Name, string | readonly string[]>> {
  return {
    purpose: replaced?.name ?? '',
    scopes: replaced?.scopes ?? LEAST_SCOPES,
    allowedNetworks: replaced?.allowedNetworks?.join('\n') ?? '',
    ...(replaced !== null && sendLimitValues(replaced)),
    validDays: '90',
    replacesKeyId: replaced?.id ?? '',
    overlapHours: '168',
  };
}

/** What the form says, for the service; what is no number is refused there. */
export function keyRequestOfForm(form: Given<Name>): GivenKeyRequest {
  const replacesKeyId = form.text('replacesKeyId') || null;
  return {
    purpose: form.text('purpose'),
    scopes: form.list('scopes'),
    allowedNetworks: linesOf(form.text('allowedNetworks')),
    ...sendLimitsOfForm(form),
    validDays: numberOf(form.text('validDays')),
    replacesKeyId,
    overlapHours: replacesKeyId === null ? null : numberOf(form.text('overlapHours')),
  };
}

function numberOf(text: string): number | null {
  return text === '' ? null : Number(text);
}
