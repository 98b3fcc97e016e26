import { type Static, type TProperties, type TSchema, Type } from 'typebox';
import { isControlMember } from '../../../platform/graph/control-members.ts';
import { isMembers } from '../../../platform/json/json-members.ts';
import { USER_ID } from '../../customers/customer-reference.ts';
import { CONTENT_SHAPES, MessageId } from './shapes/content-shapes.ts';
import { INTERACTIVE_SHAPES } from './shapes/interactive-shapes.ts';
import { DEFAULT_TYPE } from './upstream-payload.ts';

const MAX_RECIPIENT_CHARS = 256;
/** Upstream's ids of groups are base64; other signs of such ids are let through. */
const GROUP_ID = '^[A-Za-z0-9+/=_.:@-]{5,256}$';
const MAX_DATA_CHARS = 512;

const shortText = (maxLength: number) => Type.String({ minLength: 1, maxLength });

const COMMON = {
  phoneNumberId: shortText(64),
  to: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_RECIPIENT_CHARS,
      description:
        'A phone number with its country code, in any usual form; with the `recipient_type` `group`, the id of a group.',
      examples: ['+12025550143'],
    }),
  ),
  recipient: Type.Optional(Type.String({ pattern: USER_ID.source, examples: ['US.13491208655302741918'] })),
  messaging_product: Type.Optional(Type.Literal('whatsapp')),
  recipient_type: Type.Optional(Type.Enum(['individual', 'group'])),
  context: Type.Optional(Type.Object({ message_id: MessageId })),
  biz_opaque_callback_data: Type.Optional(shortText(MAX_DATA_CHARS)),
  recipient_identity_key_hash: Type.Optional(shortText(MAX_DATA_CHARS)),
  sendAt: Type.Optional(
    Type.String({
      format: 'date-time',
      description: 'Send the message then, with its offset: 30 seconds to 35 days ahead.',
      examples: ['2026-12-01T09:00:00+01:00'],
    }),
  ),
  notAfter: Type.Optional(
    Type.String({
      format: 'date-time',
      description: 'With `sendAt`: after this time the message fails instead, up to 7 days behind `sendAt`.',
      examples: ['2026-12-01T12:00:00+01:00'],
    }),
  ),
  extra: Type.Optional(
    Type.Object(
      {},
      {
        additionalProperties: true,
        description:
          'Members of upstream’s that stand next to the content, for clients whose types do not have them; here they give no warning.',
      },
    ),
  ),
};

/** What else stands beside the content is upstream's own, such as the members of Direct Send. */
export const Envelope = Type.Object({
  ...COMMON,
  to: Type.Optional(Type.String({ maxLength: MAX_RECIPIENT_CHARS, examples: ['+12025550143'] })),
  type: Type.Optional(Type.String()),
});

export const GroupEnvelope = Type.Object({
  ...COMMON,
  to: Type.String({
    pattern: GROUP_ID,
    examples: ['Y2FwaV9ncm91cDoxMjAyNTU1MDEwMDoxMjAzNjM0MDQ2OTQyMzM4MjAZD'],
  }),
  type: Type.Optional(Type.String()),
});

export type SendRequest = Static<typeof Envelope> & Record<string, unknown>;

/** The members of a read receipt, which has the address of a send. */
const OF_RECEIPTS: readonly string[] = ['status', 'message_id', 'typing_indicator'];

/** Whether a member could make a send another call of upstream, or choose its token. */
export function isReserved(name: string): boolean {
  return OF_RECEIPTS.includes(name.toLowerCase()) || isControlMember(name);
}

const TYPE = /^[a-z][a-z0-9_]{0,99}$/;

export function isTypeName(type: unknown): type is string {
  if (typeof type !== 'string' || !TYPE.test(type)) return false;
  return !Object.hasOwn(Envelope.properties, type) && !isReserved(type);
}

const NewContent = Type.Union([Type.Object({}), Type.Array(Type.Object({}))]);
const NewInteractive = Type.Object({ type: Type.String() });

/** `isKnown`: false where upstream alone knows the shape of the content. */
export function shapeOf(type: string, content: unknown): { shape: TSchema; isKnown: boolean } {
  const isInteractive = type === 'interactive';
  const subtype = isInteractive && isMembers(content) ? content.type : null;
  const shape = isInteractive
    ? INTERACTIVE_SHAPES.get(typeof subtype === 'string' ? subtype : '')
    : CONTENT_SHAPES.get(type);
  if (shape !== undefined) return { shape, isKnown: true };
  return { shape: isInteractive ? NewInteractive : NewContent, isKnown: false };
}

function sendForm(words: string, content: TProperties) {
  const name = words.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return Type.Object({ ...COMMON, ...content }, { title: `Send${name}` });
}

const type = (name: string) =>
  name === DEFAULT_TYPE ? Type.Optional(Type.Literal(name)) : Type.Literal(name);

const interactiveForm = (name: string, shape: TSchema) =>
  sendForm(`interactive_${name}`, { type: Type.Literal('interactive'), interactive: shape });

export const SendBody = Type.Union(
  [
    ...[...CONTENT_SHAPES].map(([name, shape]) => sendForm(name, { type: type(name), [name]: shape })),
    ...[...INTERACTIVE_SHAPES].map(([name, shape]) => interactiveForm(name, shape)),
    interactiveForm('new_type', NewInteractive),
    Type.Object(
      { ...COMMON, type: Type.String({ pattern: TYPE.source, examples: ['poll'] }) },
      { additionalProperties: NewContent, title: 'SendNewType' },
    ),
  ],
  { title: 'MessageToSend' },
);
