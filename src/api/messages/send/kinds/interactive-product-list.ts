import { Type } from 'typebox';
import { untitledSection } from './interactive-list.ts';
import { Body, interactiveKind } from './interactive-parts.ts';
import { strict, text, UpstreamId } from './schema-parts.ts';

const MAX_PRODUCTS = 30;

const Section = strict({
  title: Type.Optional(text(24)),
  product_items: Type.Array(strict({ product_retailer_id: UpstreamId }), {
    minItems: 1,
    maxItems: MAX_PRODUCTS,
  }),
});

type Content = { action: { sections: { title?: string; product_items: unknown[] }[] } };

export const productListMessage = interactiveKind({
  interactiveType: 'product_list',
  header: { types: ['text'], required: true },
  members: {
    body: Body,
    action: strict({
      catalog_id: UpstreamId,
      sections: Type.Array(Section, { minItems: 1, maxItems: 10 }),
    }),
  },
  check: ({ action: { sections } }: Content, path) => {
    const own = `${path}/action/sections`;
    const count = sections.reduce((sum, { product_items: products }) => sum + products.length, 0);
    if (count > MAX_PRODUCTS)
      return { param: own, message: `There may be ${MAX_PRODUCTS} products in all sections together.` };
    return untitledSection(sections, own);
  },
});
