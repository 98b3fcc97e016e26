/** What a webhook is about, read from its body. */
export type WebhookContent = {
  wabaId: string;
  eventType: string;
  eventId: string;
  identity: string;
  key: string;
};

type Body = {
  wabaId: string;
  eventType: string;
  eventId: string;
  data: {
    message?: { id: string };
    status?: { id: string; status: string } | string;
    order?: { text: string };
    reference_id?: string;
    metaMessageId?: string;
  };
};

/** The identity and ordering key that `ExpectedEvent` has for the same event; null for a body of another kind. */
export function contentOf(body: Buffer): WebhookContent | null {
  try {
    const parsed = JSON.parse(body.toString()) as Body;
    const named = identityAndKey(parsed);
    const { wabaId, eventType, eventId } = parsed;
    return named === null ? null : { wabaId, eventType, eventId, ...named };
  } catch {
    return null;
  }
}

function identityAndKey({ eventType, eventId, data }: Body): { identity: string; key: string } | null {
  const { message, status, order, reference_id: reference, metaMessageId } = data;
  if (eventType === 'message' && message !== undefined) {
    return { identity: `message ${message.id}`, key: `message ${message.id}` };
  }
  if (eventType === 'media.ready') {
    return { identity: `media.ready ${metaMessageId}`, key: `message ${metaMessageId}` };
  }
  if (eventType === 'status' && typeof status === 'object') {
    return { identity: `status ${status.id} ${status.status}`, key: `status ${status.id}` };
  }
  if (eventType === 'payment') {
    return { identity: `payment ${reference} ${String(status)}`, key: `payment ${reference}` };
  }
  if (eventType === 'order' && order !== undefined) {
    return { identity: `order ${order.text}`, key: `order ${eventId}` };
  }
  return null;
}
