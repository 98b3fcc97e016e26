import { type TSchema, Type } from 'typebox';

/** A member that is always there and may be null. */
export function nullable<T extends TSchema>(schema: T) {
  return Type.Union([schema, Type.Null()]);
}
