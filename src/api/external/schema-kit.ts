import { type TProperties, type TSchema, Type } from 'typebox';
import { invalidValue } from '../../platform/request-input.ts';
import { notFound } from '../errors/api-error.ts';

/** An object that the document has under a name. */
export function named<T extends TProperties>(title: string, members: T) {
  return Type.Object(members, { title });
}

/** Of a query or a body: members that are not named are refused. */
export function closed<T extends TProperties>(members: T) {
  return Type.Object(members, { additionalProperties: false });
}

export function namedClosed<T extends TProperties>(title: string, members: T) {
  return Type.Object(members, { title, additionalProperties: false });
}

export function text(example: string) {
  return Type.String({ examples: [example] });
}

export function count(example: number) {
  return Type.Integer({ examples: [example] });
}

/** The serializer writes a Date in ISO 8601. */
export function dateTime(example = '2026-11-21T09:30:00.000Z') {
  return Type.Unsafe<Date | string>(Type.String({ format: 'date-time', examples: [example] }));
}

/** Null is the example unless one is given. */
export function nullable<T extends TSchema>(schema: T, example: unknown = null) {
  return Type.Union([schema, Type.Null()], { examples: [example] });
}

export const AnyObject = Type.Object({}, { additionalProperties: true });

export function upstreamObject(example: object) {
  return Type.Object({}, { additionalProperties: true, examples: [example] });
}

export function listOf<T extends TSchema>(item: T) {
  const { title } = item as { title?: string };
  return Type.Object(
    { data: Type.Array(item), hasMore: Type.Boolean(), nextCursor: nullable(Type.String()) },
    title === undefined ? {} : { title: `${title}List` },
  );
}

export function parameter<T extends TSchema>(
  schema: T,
  description: string,
  example: string | number | boolean,
): T {
  return { ...schema, description, examples: [example] };
}

export function optionalParameter<T extends TSchema>(
  schema: T,
  description: string,
  example: string | number | boolean,
) {
  return Type.Optional(parameter(schema, description, example));
}

/** Of upstream's choice: it may be long, but no text that the database cannot hold. */
export function upstreamText(maxChars: number) {
  return Type.String({ pattern: `^[^\\u0000]{1,${maxChars}}$` });
}

/** Whom a tenant means, in the body of a request. */
export const Customer = parameter(
  upstreamText(256),
  'A phone number in any usual form, or a business-scoped user id.',
  '+1 202-555-0143',
);

export function idParams(description: string, example: string) {
  return Type.Object({ id: parameter(Type.String(), description, example) });
}

/** A query or body of requests that have none: one that is sent all the same is refused rather than ignored. */
export const Nothing = closed({});

const DIGITS = /^[1-9]\d{0,18}$/;
const MAX_ID = 2n ** 63n - 1n;

/** One of our ids from a path. What cannot be an id is answered as what does not exist: throws ApiError 404. */
function objectId(text: string): string {
  if (!DIGITS.test(text) || BigInt(text) > MAX_ID) throw notFound();
  return text;
}

const MAX_ACCOUNT_DIGITS = 18;

/** As `objectId`, for what the accounts hold (endpoints, replays), whose ids are shorter. Throws ApiError 404. */
export function accountObjectId(text: string): string {
  if (text.length > MAX_ACCOUNT_DIGITS) throw notFound();
  return objectId(text);
}

export function objectPath(description: string, example: string) {
  return { params: idParams(description, example), checkId: objectId };
}

export function accountObjectPath(description: string, example: string) {
  return { params: idParams(description, example), checkId: accountObjectId };
}

/** A time as tenants write it: ISO 8601 with a zone. */
export const Time = Type.String({
  format: 'date-time',
  pattern: '^\\d{4}-\\d{2}-\\d{2}T[0-9:.]{5,18}(Z|[+-]\\d{2}:\\d{2})$',
  examples: ['2026-11-19T00:00:00Z'],
});

/** Throws RequestError `invalid_value`. */
export function timeOf(param: string, text: string | undefined): Date | null {
  if (text === undefined) return null;
  const time = new Date(text);
  if (Number.isFinite(time.getTime()) && time.getTime() >= 0) return time;
  throw invalidValue('The parameter must be a time such as 2027-01-31T12:00:00Z.', param);
}

type TextReply = {
  type(contentType: string): TextReply;
  serializer(write: (payload: unknown) => string): TextReply;
  send(payload: never): unknown;
};

/**
 * Sends an answer that is JSON text already: the upstream objects in it must not pass through JSON.parse, which rounds
 * large numbers. Typed as what a handler of any answer may return.
 */
export function sendJsonText(reply: TextReply, json: string): never {
  return reply
    .type('application/json; charset=utf-8')
    .serializer(String)
    .send(json as never) as never;
}

export function sendListText(
  reply: TextReply,
  data: readonly string[],
  { hasMore, nextCursor }: { hasMore: boolean; nextCursor: string | null },
): never {
  const rest = `"hasMore":${hasMore},"nextCursor":${JSON.stringify(nextCursor)}`;
  return sendJsonText(reply, `{"data":[${data.join(',')}],${rest}}`);
}
