import { mediaUuidOf, publicMediaId } from '../../platform/public-ids.ts';

/**
 * Some clients take a text for a media id only if it is of digits, as upstream's are: the facade writes the 128 bits of
 * an id of ours as a number. It has 37 digits, upstream's have half of that.
 */
const NUMBER = /^\d{37}$/;

export function facadeMediaId(uuid: string): string {
  return BigInt(`0x${uuid.replaceAll('-', '')}`).toString();
}

/** The UUID of an uploaded file, by the facade's id of it or ours; null when the text can be neither. */
export function uploadUuidOf(id: string): string | null {
  if (!NUMBER.test(id)) return mediaUuidOf(id);
  return mediaUuidOf(`med_${BigInt(id).toString(16).padStart(32, '0')}`);
}

/** A value of a message with our ids of files in place of the facade's, at any depth. */
export function withOurMediaIds(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withOurMediaIds);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      const uuid = name === 'id' && typeof inner === 'string' ? uploadUuidOf(inner) : null;
      return [name, uuid === null ? withOurMediaIds(inner) : publicMediaId(uuid)];
    }),
  );
}
