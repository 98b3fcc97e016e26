import { isMembers } from '../../platform/json/json-members.ts';
import { mediaUuidOf } from '../../platform/public-ids.ts';
import type { MediaKind } from './uploaded-media.ts';

/** A place in an upstream message object where a file of ours is named. */
export type MediaUse = {
  /** Of the member, e.g. `interactive/header/image/id`. */
  param: string;
  kind: MediaKind;
  /** As given, e.g. `med_0192…`. */
  id: string;
  /** Null: it looks like an id of ours and cannot be one. */
  uuid: string | null;
};

const KINDS: readonly string[] = ['image', 'video', 'audio', 'document', 'sticker'] satisfies MediaKind[];

const OUR_PREFIX = 'med_';

/** Every file of ours that a message names, wherever it stands: `<kind>: { id: 'med_…' }`. */
export function mediaUsesOf(message: unknown): MediaUse[] {
  const uses: MediaUse[] = [];
  walk(message, '', '', (param, kind, holder) => {
    uses.push({ param, kind, id: holder.id, uuid: mediaUuidOf(holder.id) });
  });
  return uses;
}

/** The message as JSON text with upstream's ids in place of ours. Throws when `upstreamIds` (by uuid) lacks one. */
export function withUpstreamMedia(messageJson: string, upstreamIds: ReadonlyMap<string, string>): string {
  const message: unknown = JSON.parse(messageJson);
  walk(message, '', '', (param, _kind, holder) => {
    const upstreamId = upstreamIds.get(mediaUuidOf(holder.id) ?? '');
    if (upstreamId === undefined) throw new Error(`the file at ${param} has no upstream id`);
    holder.id = upstreamId;
  });
  return JSON.stringify(message);
}

type Found = (param: string, kind: MediaKind, holder: { id: string }) => void;

function walk(value: unknown, path: string, name: string, found: Found): void {
  if (typeof value !== 'object' || value === null) return;
  if (KINDS.includes(name) && namesOurs(value)) found(`${path}/id`, name as MediaKind, value);
  for (const [member, inner] of Object.entries(value)) {
    walk(inner, path === '' ? member : `${path}/${member}`, member, found);
  }
}

function namesOurs(value: object): value is { id: string } {
  return 'id' in value && typeof value.id === 'string' && value.id.startsWith(OUR_PREFIX);
}

/** What an outbound message says of the payment that it asks for. */
export type OrderPayment = {
  referenceId: string;
  /** Under which upstream looks the payment up; null: paid in a way that upstream knows nothing of. */
  configuration: string | null;
};

const MAX_REFERENCE_CHARS = 512;
const MAX_CONFIGURATION_CHARS = 256;

type Members = Readonly<Record<string, unknown>>;

/** The payment of an order_details message, interactive or template; null for every other message. */
export function orderPaymentOf(message: unknown): OrderPayment | null {
  const parameters = isMembers(message) ? orderDetailsOf(message) : null;
  const referenceId = textOf(parameters?.reference_id, MAX_REFERENCE_CHARS);
  if (parameters === null || referenceId === null) return null;
  return { referenceId, configuration: configurationOf(parameters) };
}

function orderDetailsOf(message: Members): Members | null {
  const { interactive, template } = message;
  if (isMembers(interactive) && interactive.type === 'order_details') {
    const parameters = isMembers(interactive.action) ? interactive.action.parameters : null;
    return isMembers(parameters) ? parameters : null;
  }
  if (!isMembers(template)) return null;
  for (const component of listOf(template.components)) {
    for (const parameter of listOf(component.parameters)) {
      const details = isMembers(parameter.action) ? parameter.action.order_details : null;
      if (isMembers(details)) return details;
    }
  }
  return null;
}

function configurationOf(parameters: Members): string | null {
  for (const setting of listOf(parameters.payment_settings)) {
    const gateway = setting.payment_gateway;
    const name = isMembers(gateway) ? textOf(gateway.configuration_name, MAX_CONFIGURATION_CHARS) : null;
    if (name !== null) return name;
  }
  return textOf(parameters.payment_configuration, MAX_CONFIGURATION_CHARS);
}

function listOf(value: unknown): Members[] {
  return Array.isArray(value) ? value.filter(isMembers) : [];
}

function textOf(value: unknown, maxChars: number): string | null {
  return typeof value === 'string' && value !== '' && value.length <= maxChars ? value : null;
}
