import type { FastifyInstance } from 'fastify';
import type { JsonObject } from '../payloads/webhook-body.ts';
import type { UpstreamContext } from '../upstream-context.ts';
import { invalidParameter, objectMissing } from './graph-failure.ts';
import { GRAPH_OBJECT_PATH, type GraphObjectRoute, graphPage } from './graph-page.ts';
import { pickFields } from './phone-number-object.ts';

type FlowRoute = GraphObjectRoute & { Body: JsonObject | undefined };

const SHOWN_IN_LISTS = 'id,name,status,categories,validation_errors';

/** Flows of an account, and what is done with one: its JSON, publishing, deprecation. */
export function registerFlows(app: FastifyInstance, context: UpstreamContext): void {
  const { flows } = context.objects;
  const list = `${GRAPH_OBJECT_PATH}/flows`;
  app.get<GraphObjectRoute>(list, async ({ params, query, host, url }) => {
    const shown = flows.ofWaba(params.id).map((flow) => pickFields(flow, query.fields ?? SHOWN_IN_LISTS));
    return graphPage(shown, query, `http://${host}${url}`);
  });
  app.post<FlowRoute>(list, async ({ params, body }, reply) => {
    const { name, categories } = body ?? {};
    if (typeof name !== 'string') {
      const { status, body: refusal } = invalidParameter(131008, 'name is missing');
      return reply.code(status).send(refusal);
    }
    const made = flows.make(params.id, {
      name,
      categories: categories ?? [],
      status: 'DRAFT',
      validation_errors: [],
    });
    return { id: made.id, success: true, validation_errors: [] };
  });
  app.get<GraphObjectRoute>(`${GRAPH_OBJECT_PATH}/assets`, async ({ params, host }) => ({
    data:
      flows.find(params.id) === undefined
        ? []
        : [
            {
              name: 'flow.json',
              asset_type: 'FLOW_JSON',
              download_url: `http://${host}/flows/${params.id}.json`,
            },
          ],
  }));
  const step = (edge: 'assets' | 'publish' | 'deprecate', members: JsonObject, result: JsonObject) => {
    app.post<GraphObjectRoute>(`${GRAPH_OBJECT_PATH}/${edge}`, async ({ params }, reply) => {
      if (flows.find(params.id) === undefined) {
        const { status, body } = objectMissing(params.id);
        return reply.code(status).send(body);
      }
      flows.change(params.id, members);
      return result;
    });
  };
  step('assets', {}, { success: true, validation_errors: [] });
  step('publish', { status: 'PUBLISHED' }, { success: true });
  step('deprecate', { status: 'DEPRECATED' }, { success: true });
}
