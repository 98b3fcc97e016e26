import type { FastifyInstance } from 'fastify';
import type { UpstreamContext } from '../upstream-context.ts';
import { answerFault } from './fault-answer.ts';
import { objectMissing } from './graph-failure.ts';
import { GRAPH_OBJECT_PATH, type GraphObjectRoute, graphPage } from './graph-page.ts';
import { phoneNumberObject, pickFields } from './phone-number-object.ts';

/** GET /{version}/{account}/phone_numbers: the numbers of a business account. */
export function registerPhoneNumbers(app: FastifyInstance, context: UpstreamContext): void {
  app.get<GraphObjectRoute>(`${GRAPH_OBJECT_PATH}/phone_numbers`, async (request, reply) => {
    const { id } = request.params;
    const fault = context.faults.take('phone_numbers', id);
    if (fault !== undefined && (await answerFault(context, reply, fault, { id }))) return reply;
    if (!context.phones.hasWaba(id)) {
      const { status, body } = objectMissing(id);
      return reply.code(status).send(body);
    }
    const phones = context.phones.ofWaba(id);
    const objects = phones.map((phone) => pickFields(phoneNumberObject(phone), request.query.fields));
    return graphPage(objects, request.query, `http://${request.host}${request.url}`);
  });
}
