import { type TSchema, Type } from 'typebox';
import { nullable } from './nullable.ts';

/** The answer of a list. */
export function listOf<T extends TSchema>(item: T) {
  const { title } = item as { title?: string };
  return Type.Object(
    { data: Type.Array(item), hasMore: Type.Boolean(), nextCursor: nullable(Type.String()) },
    title === undefined ? {} : { title: `${title}List` },
  );
}
