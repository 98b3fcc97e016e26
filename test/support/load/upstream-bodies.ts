import { createHash, createHmac } from 'node:crypto';
import { type Agent, request } from 'node:http';

/** A number of a tenant, as upstream names it. */
export type UpstreamAccount = { wabaId: string; phoneNumberId: string; displayPhoneNumber: string };

/** The first of the fixtures' numbers. */
export const ACCOUNT: UpstreamAccount = {
  wabaId: '900000000000101',
  phoneNumberId: '800000000000111',
  displayPhoneNumber: '12025550100',
};

/** An event that an item has to lead to. */
export type ExpectedEvent = {
  eventType: 'message' | 'status' | 'payment' | 'order' | 'media.ready';
  /** What tells it from every other event; `identityOf` reads the same from a webhook. */
  identity: string;
  /** Events with one key keep their order. */
  key: string;
};

/** One entry of `messages` or `statuses` with what becomes of it. */
export type UpstreamItem = {
  list: 'messages' | 'statuses';
  json: Record<string, unknown>;
  events: ExpectedEvent[];
};

const CUSTOMER = '12025550143';
const TIMESTAMP = '1790000000';

/** The JSON of one body with these items in one change. */
export function bodyOf({ wabaId, ...number }: UpstreamAccount, items: readonly UpstreamItem[]): Buffer {
  const { phoneNumberId: phone_number_id, displayPhoneNumber: display_phone_number } = number;
  const listed = (list: UpstreamItem['list']) =>
    items.filter((item) => item.list === list).map(({ json }) => json);
  const [messages, statuses] = [listed('messages'), listed('statuses')];
  const value = {
    messaging_product: 'whatsapp',
    metadata: { display_phone_number, phone_number_id },
    ...(messages.length === 0
      ? {}
      : { contacts: [{ profile: { name: 'Asha' }, wa_id: CUSTOMER }], messages }),
    ...(statuses.length === 0 ? {} : { statuses }),
  };
  const entry = [{ id: wabaId, changes: [{ value, field: 'messages' }] }];
  return Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }));
}

/** A text message from a customer. */
export function textMessage(id: string, text: string): UpstreamItem {
  return message(id, 'text', { text: { body: text } });
}

/** An image; the sandbox upstream hands out the same few bytes for the same id of digits. */
export function imageMessage(id: string, mediaId: string): UpstreamItem {
  const sha256 = createHash('sha256').update(`fixture-media:${mediaId}\n`).digest('base64');
  const item = message(id, 'image', { image: { mime_type: 'image/jpeg', sha256, id: mediaId } });
  item.events.push({ eventType: 'media.ready', identity: `media.ready ${id}`, key: `message ${id}` });
  return item;
}

/** A cart; its text carries the message's id, so that the order event can be told from others of its catalog. */
export function cartOrder(id: string, catalogId: string): UpstreamItem {
  const product = { product_retailer_id: 'sku-red-42', quantity: 2, item_price: 30, currency: 'USD' };
  const order = { catalog_id: catalogId, text: id, product_items: [product] };
  const item = message(id, 'order', { order });
  item.events.push({ eventType: 'order', identity: `order ${id}`, key: `order ${catalogId}` });
  return item;
}

/** A status of an outbound message. */
export function messageStatus(id: string, status: string): UpstreamItem {
  return {
    list: 'statuses',
    json: { id, status, timestamp: TIMESTAMP, recipient_id: CUSTOMER },
    events: [{ eventType: 'status', identity: `status ${id} ${status}`, key: `status ${id}` }],
  };
}

/** An update of a payment. */
export function paymentStatus(id: string, referenceId: string, status: string): UpstreamItem {
  const transaction = { id: `txn_${referenceId}`, type: 'razorpay', status: 'success' };
  const payment = {
    reference_id: referenceId,
    amount: { value: 21_000, offset: 100 },
    transaction: { ...transaction, created_timestamp: 1_790_003_000, updated_timestamp: 1_790_003_060 },
    currency: 'INR',
  };
  const identity = `payment ${referenceId} ${status}`;
  return {
    list: 'statuses',
    json: { id, recipient_id: CUSTOMER, type: 'payment', status, payment, timestamp: TIMESTAMP },
    events: [{ eventType: 'payment', identity, key: `payment ${referenceId}` }],
  };
}

/** The value of `X-Hub-Signature-256`. */
function upstreamSignature(body: Buffer, appSecret: string): string {
  return `sha256=${createHmac('sha256', appSecret).update(body).digest('hex')}`;
}

export type UpstreamTarget = {
  /** Without path. */
  ingressUrl: string;
  appSecret: string;
  timeoutMs: number;
  agent?: Agent;
};

/** POSTs a signed body as upstream does; resolves with the status, 0 when there was no complete answer. */
export function postUpstream(target: UpstreamTarget, body: Buffer): Promise<number> {
  return new Promise((resolve) => {
    const options = {
      method: 'POST',
      ...(target.agent === undefined ? {} : { agent: target.agent }),
      headers: {
        'content-type': 'application/json',
        'content-length': body.length,
        'x-hub-signature-256': upstreamSignature(body, target.appSecret),
      },
      signal: AbortSignal.timeout(target.timeoutMs),
    };
    const sent = request(`${target.ingressUrl}/upstream/webhook`, options, (response) => {
      response.resume();
      response.once('end', () => resolve(response.complete ? (response.statusCode ?? 0) : 0));
      response.once('error', () => resolve(0));
    });
    sent.once('error', () => resolve(0));
    sent.end(body);
  });
}

function message(id: string, type: string, content: Record<string, unknown>): UpstreamItem {
  return {
    list: 'messages',
    json: { from: CUSTOMER, id, timestamp: TIMESTAMP, type, ...content },
    events: [{ eventType: 'message', identity: `message ${id}`, key: `message ${id}` }],
  };
}
