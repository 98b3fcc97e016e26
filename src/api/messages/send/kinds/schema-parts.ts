import { type Static, type TProperties, Type } from 'typebox';

/** An object without other members: what upstream adds later goes into `extra`. */
export function strict<T extends TProperties>(properties: T) {
  return Type.Object(properties, { additionalProperties: false });
}

/** Text that is not empty, up to `maxLength` characters. */
export function text(maxLength: number) {
  return Type.String({ minLength: 1, maxLength });
}

const MAX_ID_CHARS = 512;
const MAX_URL_CHARS = 4_096;

/** An id of upstream's. */
export const UpstreamId = text(MAX_ID_CHARS);

export const WebAddress = Type.String({ pattern: '^https?://[^\\s]+$', maxLength: MAX_URL_CHARS });

/** A file: uploaded before, to us (`id` begins with `med_`) or to upstream (`id`), or fetched by upstream (`link`). */
export const MEDIA_SOURCE = { id: Type.Optional(UpstreamId), link: Type.Optional(WebAddress) };

export const MediaSource = strict(MEDIA_SOURCE);

/** An amount of money: `value / offset`; upstream takes 100 only. */
export const Amount = strict({
  value: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
  offset: Type.Literal(100),
});

export type AmountValue = Static<typeof Amount>;
