import type { PhoneNumber } from '../demo-accounts.ts';

/** A JSON object. */
export type JsonObject = Record<string, unknown>;

/** What goes into `value` of one change of field `messages`. */
type ChangeContent = { contacts?: JsonObject[]; messages?: JsonObject[]; statuses?: JsonObject[] };

/** A webhook body of the upstream platform with one entry and one change. */
export function webhookBody(phone: PhoneNumber, content: ChangeContent): JsonObject {
  const value = {
    messaging_product: 'whatsapp',
    metadata: {
      display_phone_number: phone.displayPhoneNumber.replace(/\D/g, ''),
      phone_number_id: phone.phoneNumberId,
    },
    ...content,
  };
  return {
    object: 'whatsapp_business_account',
    entry: [{ id: phone.wabaId, changes: [{ value, field: 'messages' }] }],
  };
}

/**
 * The bytes of a body as the platform sends them: compact, with everything outside ASCII written as
 * \uXXXX in lower-case hex. Receivers must check the signature over exactly these bytes.
 */
export function serializeWebhookBody(body: unknown): Buffer {
  const json = JSON.stringify(body);
  return Buffer.from(
    json.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
  );
}
