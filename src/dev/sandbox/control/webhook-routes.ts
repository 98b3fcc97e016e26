import type { FastifyInstance } from 'fastify';
import { serializeWebhookBody } from '../payloads/webhook-body.ts';
import type { UpstreamContext } from '../upstream-context.ts';
import type { SignatureForm, WebhookAnswer } from '../upstream-webhook-sender.ts';
import { IngressUnreachableError } from '../upstream-webhook-sender.ts';
import { ControlError } from './control-error.ts';

type WebhookRequest = { body?: unknown; bodyBase64?: string; signature?: SignatureForm };

const webhookRequestSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    body: {},
    bodyBase64: { type: 'string' },
    signature: { enum: ['valid', 'wrong', 'missing'] },
  },
} as const;

/** The exact bytes to send: base64 and strings as they are, objects as the platform writes them. */
function bytesOf({ body, bodyBase64 }: WebhookRequest): Buffer {
  if (bodyBase64 !== undefined) {
    return Buffer.from(bodyBase64, 'base64');
  }
  if (body === undefined) {
    throw new ControlError(
      400,
      'missing_body',
      'Give the webhook as body (object or exact text) or bodyBase64.',
    );
  }
  return typeof body === 'string' ? Buffer.from(body) : serializeWebhookBody(body);
}

/** Posts a webhook to the ingress and turns silence into an error for the developer. */
export async function sendToIngress(
  context: UpstreamContext,
  body: Buffer,
  signature?: SignatureForm,
): Promise<WebhookAnswer> {
  try {
    return await context.sender.send(body, signature);
  } catch (error) {
    throw error instanceof IngressUnreachableError
      ? new ControlError(502, 'ingress_unreachable', error.message, { cause: error })
      : error;
  }
}

/** /sandbox/webhooks sends given bytes, signed; /sandbox/verify does the subscription handshake. */
export function registerWebhookRoutes(app: FastifyInstance, context: UpstreamContext): void {
  app.post<{ Body: WebhookRequest }>(
    '/sandbox/webhooks',
    { schema: { body: webhookRequestSchema } },
    async (request) => {
      const body = bytesOf(request.body);
      return { ...(await sendToIngress(context, body, request.body.signature)), sizeBytes: body.length };
    },
  );
  app.post('/sandbox/verify', async () => {
    const { challenge, ...answer } = await context.sender.verify().catch((error: unknown) => {
      throw new ControlError(502, 'ingress_unreachable', String(error), { cause: error });
    });
    return { ...answer, verified: answer.status === 200 && answer.responseBody === challenge };
  });
}
