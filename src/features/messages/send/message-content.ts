import { isMembers, listOf, type Members, membersOf } from '../../../platform/json/json-members.ts';
import { mediaUuidOf } from '../../../platform/public-ids.ts';
import type { MediaKind } from './uploaded-media.ts';

export type MediaUse = {
  /** Of the member, e.g. `interactive/header/image/id`. */
  param: string;
  kind: MediaKind;
  id: string;
  /** Null: it looks like an id of ours and cannot be one. */
  uuid: string | null;
};

const KINDS: readonly string[] = ['image', 'video', 'audio', 'document', 'sticker'] satisfies MediaKind[];

const OUR_PREFIX = 'med_';

/** A file of ours may stand at any depth: `<kind>: { id: 'med_…' }`. */
export function mediaUsesOf(message: unknown): MediaUse[] {
  const uses: MediaUse[] = [];
  walk(message, '', '', (param, kind, holder) => {
    uses.push({ param, kind, id: holder.id, uuid: mediaUuidOf(holder.id) });
  });
  return uses;
}

/** JSON text. Throws when `upstreamIds` (by uuid) lacks one. */
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

export type OrderPayment = {
  referenceId: string;
  /** Null: paid in a way that upstream knows nothing of. */
  configuration: string | null;
};

const MAX_REFERENCE_CHARS = 512;
const MAX_CONFIGURATION_CHARS = 256;

/** Of an order_details message, interactive or template; null for every other message. */
export function orderPaymentOf(message: unknown): OrderPayment | null {
  const parameters = orderDetailsOf(membersOf(message));
  const referenceId = shortText(parameters.reference_id, MAX_REFERENCE_CHARS);
  return referenceId === null ? null : { referenceId, configuration: configurationOf(parameters) };
}

function orderDetailsOf({ interactive, template }: Members): Members {
  const { type, action } = membersOf(interactive);
  if (type === 'order_details') return membersOf(membersOf(action).parameters);
  const parameters = listOf(membersOf(template).components).flatMap((component) =>
    listOf(component.parameters),
  );
  const details = parameters.map((parameter) => membersOf(parameter.action).order_details);
  return membersOf(details.find(isMembers));
}

function configurationOf({ payment_settings: settings, payment_configuration: configuration }: Members) {
  const gateways = listOf(settings).map((setting) => membersOf(setting.payment_gateway));
  const names = [...gateways.map((gateway) => gateway.configuration_name), configuration];
  return names.map((name) => shortText(name, MAX_CONFIGURATION_CHARS)).find((name) => name !== null) ?? null;
}

function shortText(value: unknown, maxChars: number): string | null {
  return typeof value === 'string' && value !== '' && value.length <= maxChars ? value : null;
}
