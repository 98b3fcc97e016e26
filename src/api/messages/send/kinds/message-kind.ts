import { type Static, type TObject, type TProperties, Type } from 'typebox';
import { exactlyOne, joined, type Problem } from '../problems.ts';

/** One kind of message that can be sent. */
export type MessageKind = {
  /** The member `type`, and the name of the member with the content. */
  type: string;
  /** Of an interactive message, its own `type`. */
  interactiveType?: string;
  content: TObject;
  /** What the schema cannot say; `path` is the content's. Only called for what follows the schema. */
  check?: (content: never, path: string) => Problem | null;
};

/** A kind whose check knows the content by its schema. */
export function messageKind<T extends TObject>(kind: {
  type: string;
  interactiveType?: string;
  content: T;
  check?: (content: Static<T>, path: string) => Problem | null;
}): MessageKind {
  return kind as unknown as MessageKind;
}

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

export const Body = strict({ text: text(1_024) });
const Footer = Type.Optional(strict({ text: text(60) }));

/** A header with a file or a text above the message. */
const Header = strict({
  type: Type.Enum(['text', 'image', 'video', 'document']),
  text: Type.Optional(text(60)),
  image: Type.Optional(MediaSource),
  video: Type.Optional(MediaSource),
  document: Type.Optional(strict({ ...MEDIA_SOURCE, filename: Type.Optional(text(240)) })),
});

type HeaderValue = { type: string } & Partial<Record<string, unknown>>;

const HEADER_MEMBERS = ['text', 'image', 'video', 'document'];

/** Which headers a kind of interactive message may have; none: the member is refused. */
type HeaderRule = { types: readonly string[]; required?: true };

/** What all interactive messages share; `members` are the kind's own. */
export function interactiveKind<Type_ extends string, Members extends TProperties>(kind: {
  interactiveType: Type_;
  members: Members;
  header?: HeaderRule;
  check?: (content: never, path: string) => Problem | null;
}): MessageKind {
  const { interactiveType, members, header, check } = kind;
  const headerMember =
    header === undefined ? {} : { header: header.required ? Header : Type.Optional(Header) };
  return messageKind({
    type: 'interactive',
    interactiveType,
    content: strict({ type: Type.Literal(interactiveType), ...headerMember, footer: Footer, ...members }),
    check: (content, path) =>
      checkHeader(
        (content as { header?: HeaderValue }).header,
        header?.types ?? [],
        joined(path, 'header'),
      ) ??
      check?.(content as never, path) ??
      null,
  });
}

function checkHeader(
  header: HeaderValue | undefined,
  types: readonly string[],
  path: string,
): Problem | null {
  if (header === undefined) return null;
  if (!types.includes(header.type)) {
    return { param: joined(path, 'type'), message: `The parameter must be one of ${types.join(', ')}.` };
  }
  const content = header[header.type];
  if (content === undefined) {
    return { param: joined(path, header.type), message: 'The parameter is missing.' };
  }
  const other = HEADER_MEMBERS.find((name) => name !== header.type && header[name] !== undefined);
  if (other !== undefined) {
    return { param: joined(path, other), message: 'The header is of another type.' };
  }
  if (header.type === 'text') return null;
  return exactlyOne(content as Record<string, unknown>, ['id', 'link'], joined(path, header.type));
}
