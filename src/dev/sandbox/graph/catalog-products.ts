import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { UpstreamContext } from '../upstream-context.ts';
import { answerFault } from './fault-answer.ts';
import { invalidParameter } from './graph-failure.ts';
import { graphPage } from './graph-page.ts';
import { GRAPH_OBJECT_PATH, type GraphObjectRoute } from './graph-paths.ts';
import { pickFields } from './phone-number-object.ts';

const DEMO_RETAILER_IDS = ['sku-red-42', 'sku-blue-7'];

function productName(retailerId: string): string {
  const words = retailerId.split(/[-_\s]+/).filter((word) => word !== '' && word !== 'sku');
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(' ');
  return `Demo ${name === '' ? 'product' : name}`;
}

/** A product made up from its retailer id: the same one every time. */
function demoProduct(retailerId: string): Record<string, unknown> {
  const digest = createHash('sha256').update(retailerId).digest();
  return {
    id: `72${String(digest.readUIntBE(0, 6) % 10 ** 13).padStart(13, '0')}`,
    retailer_id: retailerId,
    name: productName(retailerId),
    image_url: `https://example.com/catalog/${encodeURIComponent(retailerId)}.jpg`,
    availability: 'in stock',
  };
}

/** The retailer ids that the filter asks for; undefined when it cannot be understood. */
function askedRetailerIds(filter: string | undefined): string[] | undefined {
  if (filter === undefined) {
    return DEMO_RETAILER_IDS;
  }
  try {
    const parsed: { retailer_id?: { is_any?: unknown; eq?: unknown } } | null = JSON.parse(filter);
    const condition = parsed?.retailer_id;
    const ids = Array.isArray(condition?.is_any) ? condition.is_any : [condition?.eq];
    return ids.every((id) => typeof id === 'string') ? ids : undefined;
  } catch {
    return undefined;
  }
}

/** GET /{version}/{catalog}/products: a product for any retailer id that does not contain `unknown`. */
export function registerCatalogProducts(app: FastifyInstance, context: UpstreamContext): void {
  app.get<GraphObjectRoute>(`${GRAPH_OBJECT_PATH}/products`, async (request, reply) => {
    const { id } = request.params;
    const fault = context.faults.take('catalog', id);
    if (fault !== undefined && (await answerFault(context, reply, fault, { id }))) {
      return reply;
    }
    const asked = askedRetailerIds(request.query.filter);
    if (asked === undefined) {
      const { status, body } = invalidParameter(100, 'The parameter filter is not valid');
      return reply.code(status).send(body);
    }
    const known = [...new Set(asked)].filter((retailerId) => !retailerId.toLowerCase().includes('unknown'));
    // Without fields the API shows the name and the retailer id only.
    const fields = request.query.fields ?? 'id,retailer_id,name';
    const products = known.map((retailerId) => pickFields(demoProduct(retailerId), fields));
    return graphPage(products, request.query, `http://${request.host}${request.url}`);
  });
}
