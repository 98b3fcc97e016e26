import { type TProperties, Type } from 'typebox';
import { type MessageKind, messageKind } from './message-kind.ts';
import { exactlyOne, joined, type Problem } from './problem.ts';
import { MEDIA_SOURCE, MediaSource, strict, text } from './schema-parts.ts';

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
