import { Type } from 'typebox';
import { exactlyOne, noneTwice, type Problem } from '../problems.ts';
import { Body, interactiveKind, strict, text, UpstreamId } from './message-kind.ts';

const MAX_ROWS = 10;

const Row = strict({ id: text(200), title: text(24), description: Type.Optional(text(72)) });

const Section = strict({
  title: Type.Optional(text(24)),
  rows: Type.Array(Row, { minItems: 1, maxItems: MAX_ROWS }),
});

type Content = { action: { sections: { title?: string; rows: { id: string }[] }[] } };

export const listMessage = interactiveKind({
  interactiveType: 'list',
  header: { types: ['text'] },
  members: {
    body: strict({ text: text(4_096) }),
    action: strict({
      button: text(20),
      sections: Type.Array(Section, { minItems: 1, maxItems: 10 }),
    }),
  },
  check: ({ action: { sections } }: Content, path) => {
    const own = `${path}/action/sections`;
    const ids = sections.flatMap(({ rows }, section) =>
      rows.map(({ id }, row) => [`${own}/${section}/rows/${row}/id`, id] as const),
    );
    if (ids.length > MAX_ROWS)
      return { param: own, message: `There may be ${MAX_ROWS} rows in all sections together.` };
    return untitledSection(sections, own) ?? noneTwice(ids);
  },
});

/** With several sections each needs a title. */
function untitledSection(sections: readonly { title?: string }[], path: string): Problem | null {
  const index = sections.length < 2 ? -1 : sections.findIndex(({ title }) => title === undefined);
  if (index < 0) return null;
  return { param: `${path}/${index}/title`, message: 'With several sections each needs a title.' };
}

const MAX_PRODUCTS = 30;

const ProductSection = strict({
  title: Type.Optional(text(24)),
  product_items: Type.Array(strict({ product_retailer_id: UpstreamId }), {
    minItems: 1,
    maxItems: MAX_PRODUCTS,
  }),
});

type ProductContent = { action: { sections: { title?: string; product_items: unknown[] }[] } };

export const productListMessage = interactiveKind({
  interactiveType: 'product_list',
  header: { types: ['text'], required: true },
  members: {
    body: Body,
    action: strict({
      catalog_id: UpstreamId,
      sections: Type.Array(ProductSection, { minItems: 1, maxItems: 10 }),
    }),
  },
  check: ({ action: { sections } }: ProductContent, path) => {
    const own = `${path}/action/sections`;
    const count = sections.reduce((sum, { product_items: products }) => sum + products.length, 0);
    if (count > MAX_PRODUCTS)
      return { param: own, message: `There may be ${MAX_PRODUCTS} products in all sections together.` };
    return untitledSection(sections, own);
  },
});

type FlowContent = { action: { parameters: Record<string, unknown> } };

export const flowMessage = interactiveKind({
  interactiveType: 'flow',
  header: { types: ['text', 'image', 'video', 'document'] },
  members: {
    body: Body,
    action: strict({
      name: Type.Literal('flow'),
      parameters: strict({
        flow_message_version: Type.Literal('3'),
        flow_id: Type.Optional(UpstreamId),
        flow_name: Type.Optional(UpstreamId),
        flow_cta: text(30),
        flow_token: Type.Optional(text(1_000)),
        flow_action: Type.Optional(Type.Enum(['navigate', 'data_exchange'])),
        flow_action_payload: Type.Optional(
          strict({
            screen: Type.Optional(text(1_000)),
            data: Type.Optional(Type.Object({}, { additionalProperties: true })),
          }),
        ),
        mode: Type.Optional(Type.Enum(['draft', 'published'])),
      }),
    }),
  },
  check: ({ action }: FlowContent, path) =>
    exactlyOne(action.parameters, ['flow_id', 'flow_name'], `${path}/action/parameters`),
});
