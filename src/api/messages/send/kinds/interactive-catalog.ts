import { Type } from 'typebox';
import { Body, interactiveKind } from './interactive-parts.ts';
import { strict, UpstreamId } from './schema-parts.ts';

export const catalogMessage = interactiveKind({
  interactiveType: 'catalog_message',
  members: {
    body: Body,
    action: strict({
      name: Type.Literal('catalog_message'),
      parameters: Type.Optional(strict({ thumbnail_product_retailer_id: Type.Optional(UpstreamId) })),
    }),
  },
});
