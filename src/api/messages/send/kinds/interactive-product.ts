import { Type } from 'typebox';
import { Body, interactiveKind } from './interactive-parts.ts';
import { strict, UpstreamId } from './schema-parts.ts';

export const productMessage = interactiveKind({
  interactiveType: 'product',
  members: {
    body: Type.Optional(Body),
    action: strict({ catalog_id: UpstreamId, product_retailer_id: UpstreamId }),
  },
});
