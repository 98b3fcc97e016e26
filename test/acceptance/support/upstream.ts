import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { description } from './stack.ts';

/** POSTs a signed body to the ingress as the upstream platform does; status 0 when there was no answer. */
export async function postUpstream(body: string | Buffer, secret?: string): Promise<number> {
  const { ingressUrl, upstream } = description();
  const signature = createHmac('sha256', secret ?? upstream.appSecret)
    .update(body)
    .digest('hex');
  try {
    const response = await fetch(`${ingressUrl}/upstream/webhook`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-hub-signature-256': `sha256=${signature}` },
      body: body as never,
      signal: AbortSignal.timeout(10_000),
    });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return 0;
  }
}

export function fixture(name: string): Buffer {
  return readFileSync(new URL(`../../fixtures/upstream/${name}`, import.meta.url));
}

/** A body with one text message of its own id. */
export function textBody(
  id: string,
  text: string,
  number = '800000000000111',
  wabaId = '900000000000101',
): string {
  const value = {
    messaging_product: 'whatsapp',
    metadata: { display_phone_number: '12025550100', phone_number_id: number },
    contacts: [{ profile: { name: 'Asha' }, wa_id: '12025550143' }],
    messages: [{ from: '12025550143', id, timestamp: '1790000000', type: 'text', text: { body: text } }],
  };
  return JSON.stringify({
    object: 'whatsapp_business_account',
    entry: [{ id: wabaId, changes: [{ field: 'messages', value }] }],
  });
}

/** A body with one status of a message. */
export function statusBody(id: string, status: string): string {
  const value = {
    messaging_product: 'whatsapp',
    metadata: { display_phone_number: '12025550100', phone_number_id: '800000000000111' },
    statuses: [{ id, status, timestamp: '1790000000', recipient_id: '12025550143' }],
  };
  return JSON.stringify({
    object: 'whatsapp_business_account',
    entry: [{ id: '900000000000101', changes: [{ field: 'messages', value }] }],
  });
}
