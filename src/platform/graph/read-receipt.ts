import { type GraphConnection, graphPost } from './graph-connection.ts';
import { noAnswer } from './graph-error.ts';

export type ReadReceipt = {
  phoneNumberId: string;
  /** Upstream's id of the inbound message. */
  upstreamId: string;
  /** Shows the customer that an answer is being written, for up to 25 s. */
  typingIndicator: boolean;
  token: string;
  timeoutMs: number;
};

/** Marks an inbound message, and those before it, as read: `POST /{phone number id}/messages`. Throws GraphError. */
export async function sendReadReceipt(connection: GraphConnection, receipt: ReadReceipt): Promise<void> {
  const { phoneNumberId, upstreamId, typingIndicator, token, timeoutMs } = receipt;
  const { success } = await graphPost(connection, {
    path: [phoneNumberId, 'messages'],
    token,
    timeoutMs,
    body: {
      messaging_product: 'whatsapp',
      status: 'read',
      message_id: upstreamId,
      ...(typingIndicator && { typing_indicator: { type: 'text' } }),
    },
  });
  if (success !== true) throw noAnswer('its answer does not say success');
}
