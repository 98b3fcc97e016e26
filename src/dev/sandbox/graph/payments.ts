import type { FastifyInstance } from 'fastify';
import type { UpstreamContext } from '../upstream-context.ts';
import { answerFault } from './fault-answer.ts';
import { objectMissing } from './graph-failure.ts';
import { GRAPH_OBJECT_PATH, type GraphObjectRoute } from './graph-paths.ts';

type PaymentRoute = GraphObjectRoute & {
  Params: GraphObjectRoute['Params'] & { configuration: string; referenceId: string };
};

const CREATED_SECONDS = 1_790_000_000;

/** GET /{version}/{phone}/payments/{configuration}/{reference}: captured, unless either name contains `unknown`. */
export function registerPayments(app: FastifyInstance, context: UpstreamContext): void {
  app.get<PaymentRoute>(
    `${GRAPH_OBJECT_PATH}/payments/:configuration/:referenceId`,
    async (request, reply) => {
      const { id, configuration, referenceId } = request.params;
      const fault = context.faults.take('payments', id);
      if (fault !== undefined && (await answerFault(context, reply, fault, { id }))) {
        return reply;
      }
      const isUnknown = `${configuration}/${referenceId}`.includes('unknown');
      if (context.phones.find(id) === undefined || isUnknown) {
        const { status, body } = objectMissing(id);
        return reply.code(status).send(body);
      }
      const transaction = {
        id: `order_${referenceId}`,
        pg_transaction_id: `pay_${referenceId}`,
        type: 'razorpay',
        status: 'success',
        created_timestamp: CREATED_SECONDS,
        updated_timestamp: CREATED_SECONDS,
        method: { type: 'upi' },
      };
      const payment = {
        reference_id: referenceId,
        status: 'captured',
        currency: 'INR',
        total_amount: { value: 21_000, offset: 100 },
        transactions: [transaction],
      };
      return { payments: [payment] };
    },
  );
}
