import { createHmac } from 'node:crypto';
import { addressOf, eventIdOf, type RunPlan, STATUSES, type Target } from '../run-plan.ts';

/** Whole signed requests to the ingress, ready to be written to a connection. */
export function buildUpstreamRequests(plan: RunPlan, ingress: { port: number; appSecret: string }): Buffer[] {
  const timestamp = String(Math.floor(Date.now() / 1000));
  return Array.from({ length: plan.count }, (_, n) => {
    const { customer, target } = addressOf(plan, n);
    const to = plan.targets[target];
    if (to === undefined) throw new Error('a run without targets');
    const id = eventIdOf(plan.run, n);
    const contents = {
      message: () => messageContent({ id, n, customer, timestamp }),
      statuses: () => statusesContent({ id, customer, timestamp }),
      '200 statuses': () => ({
        statuses: Array.from({ length: 200 }, (_, item) =>
          sentStatus({ id: `${id}.${item}`, customer: item, timestamp }),
        ),
      }),
    };
    return signedRequest(upstreamBody(to, contents[plan.body]()), ingress);
  });
}

function messageContent(message: { id: string; n: number; customer: number; timestamp: string }) {
  const { id, n, customer, timestamp } = message;
  const from = customerNumber(customer);
  const text = `Message ${n}: ${'does it come in another size? '.repeat(1 + (n % 8))}`;
  return {
    contacts: [{ profile: { name: `Customer ${customer}` }, wa_id: from }],
    messages: [{ from, id, timestamp, type: 'text', text: { body: text } }],
  };
}

function statusesContent({ id, customer, timestamp }: { id: string; customer: number; timestamp: string }) {
  const recipient_id = customerNumber(customer);
  return { statuses: STATUSES.map((status) => ({ id, status, timestamp, recipient_id })) };
}

function sentStatus({ id, customer, timestamp }: { id: string; customer: number; timestamp: string }) {
  return { id, status: STATUSES[0], timestamp, recipient_id: customerNumber(customer) };
}

function customerNumber(customer: number): string {
  return `1202556${String(customer).padStart(4, '0')}`;
}

function upstreamBody({ wabaId, phoneNumberId }: Target, content: object): Buffer {
  const metadata = { display_phone_number: '12025550100', phone_number_id: phoneNumberId };
  const value = { messaging_product: 'whatsapp', metadata, ...content };
  const entry = [{ id: wabaId, changes: [{ value, field: 'messages' }] }];
  return Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }));
}

function signedRequest(body: Buffer, { port, appSecret }: { port: number; appSecret: string }): Buffer {
  const signature = createHmac('sha256', appSecret).update(body).digest('hex');
  const head = [
    'POST /upstream/webhook HTTP/1.1',
    `host: 127.0.0.1:${port}`,
    'content-type: application/json',
    `x-hub-signature-256: sha256=${signature}`,
    `content-length: ${body.length}`,
  ];
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]);
}
