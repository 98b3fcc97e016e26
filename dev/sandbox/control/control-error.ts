import { DEMO_PHONE_NUMBER_ID, type PhoneNumber } from '../demo-accounts.ts';
import type { UpstreamContext } from '../upstream-context.ts';
import {
  IngressUnreachableError,
  type SignatureForm,
  type WebhookAnswer,
} from '../upstream-webhook-sender.ts';

/** A control request that cannot be carried out; its message is for the developer. */
export class ControlError extends Error {
  override name = 'ControlError';
  readonly statusCode: number;
  readonly code: string;

  constructor(statusCode: number, code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.statusCode = statusCode;
    this.code = code;
  }
}

/** The number that a request names, the demo one unless it does. Throws ControlError. */
export function phoneOf(context: UpstreamContext, request: { phoneNumberId?: string }): PhoneNumber {
  const id = request.phoneNumberId ?? DEMO_PHONE_NUMBER_ID;
  const phone = context.phones.find(id);
  if (phone === undefined) {
    throw new ControlError(
      404,
      'unknown_phone_number',
      `No phone number ${id}; add it with POST /sandbox/phone-numbers.`,
    );
  }
  return phone;
}

/** Posts a webhook to the ingress and turns silence into an error for the developer. Throws ControlError. */
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
