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
