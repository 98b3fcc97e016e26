import { type TSchema, Type } from 'typebox';

/** A text as answers have it. */
export function text(example: string) {
  return Type.String({ examples: [example] });
}

/** A whole number as answers have it. */
export function count(example: number) {
  return Type.Integer({ examples: [example] });
}

/** A moment as answers have it. */
export function dateTime(example = '2026-11-21T09:30:00.000Z') {
  return Type.String({ format: 'date-time', examples: [example] });
}

/** A member that is always there and may be null, as it is in the example unless one is given. */
export function nullable<T extends TSchema>(schema: T, example: unknown = null) {
  return Type.Union([schema, Type.Null()], { examples: [example] });
}

/** What upstream says, as it says it. */
export function upstreamObject(example: object) {
  return Type.Object({}, { additionalProperties: true, examples: [example] });
}

/** The answer of a list. */
export function listOf<T extends TSchema>(item: T) {
  const { title } = item as { title?: string };
  return Type.Object(
    { data: Type.Array(item), hasMore: Type.Boolean(), nextCursor: nullable(Type.String()) },
    title === undefined ? {} : { title: `${title}List` },
  );
}

/** A parameter of path or query, with what it means and an example. */
export function parameter<T extends TSchema>(schema: T, description: string, example: string | number): T {
  return { ...schema, description, examples: [example] };
}

/** The path of one object. */
export function idParams(description: string, example: string) {
  return Type.Object({ id: parameter(Type.String(), description, example) });
}

/** For endpoints without query parameters: one that is sent all the same is refused rather than ignored. */
export const NoQuery = Type.Object({}, { additionalProperties: false });

/** For requests that say nothing. */
export const NoBody = Type.Object({}, { additionalProperties: false });
