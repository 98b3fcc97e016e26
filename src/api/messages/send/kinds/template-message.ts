import { type TSchema, Type } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { exactlyOne, joined, memberProblem, type Problem } from '../problems.ts';
import { MEDIA_SOURCE, messageKind, strict, text, UpstreamId } from './message-kind.ts';

const Name = { parameter_name: Type.Optional(text(512)) };
const Anything = Type.Object({}, { additionalProperties: true });

const parameter = <T extends Record<string, TSchema>>(type: string, members: T) =>
  strict({ type: Type.Literal(type), ...Name, ...members });

/** The parameters that are known; others pass as they are, because `extra` cannot reach into a list. */
const PARAMETERS: ReadonlyMap<string, Validator> = new Map(
  Object.entries({
    text: parameter('text', { text: text(32_768) }),
    currency: parameter('currency', {
      currency: strict({
        fallback_value: text(1_000),
        code: Type.String({ pattern: '^[A-Z]{3}$' }),
        amount_1000: Type.Integer(),
      }),
    }),
    date_time: parameter('date_time', {
      date_time: Type.Object({ fallback_value: text(1_000) }, { additionalProperties: true }),
    }),
    image: parameter('image', { image: strict(MEDIA_SOURCE) }),
    video: parameter('video', { video: strict(MEDIA_SOURCE) }),
    document: parameter('document', {
      document: strict({ ...MEDIA_SOURCE, filename: Type.Optional(text(240)) }),
    }),
    location: parameter('location', { location: Anything }),
    payload: parameter('payload', { payload: text(1_000) }),
    action: parameter('action', { action: Anything }),
    coupon_code: parameter('coupon_code', { coupon_code: text(1_000) }),
    product: parameter('product', {
      product: strict({ product_retailer_id: UpstreamId, catalog_id: UpstreamId }),
    }),
    limited_time_offer: parameter('limited_time_offer', { limited_time_offer: Anything }),
    order_status: parameter('order_status', { order_status: Anything }),
  }).map(([type, schema]) => [type, Compile(schema)]),
);
const MEDIA_PARAMETERS = ['image', 'video', 'document'];

const Parameter = Type.Object({ type: text(100) }, { additionalProperties: true });

const COMPONENT = {
  type: Type.String({ pattern: '^[A-Za-z_]{1,100}$' }),
  sub_type: Type.Optional(text(100)),
  index: Type.Optional(Type.Union([Type.Integer({ minimum: 0, maximum: 100 }), text(3)])),
  parameters: Type.Optional(Type.Array(Parameter, { maxItems: 1_000 })),
};

const Card = strict({
  card_index: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
  components: Type.Array(strict(COMPONENT), { maxItems: 100 }),
});

const Component = strict({ ...COMPONENT, cards: Type.Optional(Type.Array(Card, { maxItems: 100 })) });

type ComponentValue = { parameters?: { type: string }[]; cards?: { components: ComponentValue[] }[] };

export const templateMessage = messageKind({
  type: 'template',
  content: strict({
    name: Type.String({ pattern: '^[a-z0-9_]{1,512}$' }),
    language: strict({
      code: Type.String({ pattern: '^[a-z]{2,3}(_[A-Za-z]{2,4})?$' }),
      policy: Type.Optional(Type.Literal('deterministic')),
    }),
    components: Type.Optional(Type.Array(Component, { maxItems: 100 })),
  }),
  check: (content, path) => checkComponents(content.components ?? [], joined(path, 'components')),
});

function checkComponents(components: readonly ComponentValue[], path: string): Problem | null {
  for (const [index, { parameters = [], cards = [] }] of components.entries()) {
    const own = joined(path, index);
    for (const [at, parameter] of parameters.entries()) {
      const problem = checkParameter(parameter, `${own}/parameters/${at}`);
      if (problem !== null) return problem;
    }
    for (const [at, card] of cards.entries()) {
      const problem = checkComponents(card.components, `${own}/cards/${at}/components`);
      if (problem !== null) return problem;
    }
  }
  return null;
}

function checkParameter(parameter: { type: string }, path: string): Problem | null {
  const validator = PARAMETERS.get(parameter.type);
  if (validator === undefined) return null;
  if (!validator.Check(parameter)) return memberProblem(validator.Errors(parameter), path);
  if (!MEDIA_PARAMETERS.includes(parameter.type)) return null;
  const file = (parameter as Record<string, unknown>)[parameter.type] as Record<string, unknown>;
  return exactlyOne(file, ['id', 'link'], joined(path, parameter.type));
}
