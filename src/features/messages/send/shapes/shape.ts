import { type TProperties, Type } from 'typebox';

/** Upstream decides how long it may be. */
export const Text = Type.String();

const FILE = { id: Type.Optional(Text), link: Type.Optional(Text) };

/** A file: uploaded before, to us (`id` begins with `med_`) or to upstream (`id`), or fetched by upstream (`link`). */
export const File = Type.Object(FILE);

export const NamedFile = Type.Object({ ...FILE, filename: Type.Optional(Text) });

export const Amount = Type.Object({ value: Type.Integer(), offset: Type.Integer() });

export function optional<T extends TProperties>(properties: T) {
  return Type.Partial(Type.Object(properties));
}
