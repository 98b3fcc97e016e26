import { randomBytes, randomInt } from 'node:crypto';
import { expect, vi } from 'vitest';
import { PATIENCE_MS } from '../../support/patience.ts';
import { description } from './stack.ts';
import { postUpstream, textBody } from './upstream.ts';

/** A customer whose conversation is the newest, with the last picture in it. */
export type Customer = { phone: string; text: string; picture: Buffer };

/** A customer who wrote last of all, and sent a picture that is stored already. */
export async function newestConversation(): Promise<Customer> {
  const phone = `1202555${randomInt(1000, 9999)}`;
  const text = `Is it ready? ${randomBytes(4).toString('hex')}`;
  const picture = randomBytes(5_000);
  await writeAsCustomer(phone, { type: 'text', text: { body: text } });
  await sendPicture(phone, picture);
  const { data } = await api<{ data: { id: string }[] }>('GET', '/api/external/conversations?limit=1');
  const messagesPath = `/api/external/conversations/${data[0]?.id}/messages`;
  await until(async () => {
    const { data: messages } = await api<{ data: { mediaUrl: string | null }[] }>('GET', messagesPath);
    expect(messages.some(({ mediaUrl }) => mediaUrl !== null)).toBe(true);
  });
  return { phone, text, picture };
}

/** Sends a picture as a customer does. */
export async function sendPicture(phone: string, bytes: Buffer): Promise<void> {
  const stored = await fetch(`${description().sandboxUrl}/sandbox/media?filename=a.jpg`, {
    method: 'POST',
    headers: { 'content-type': 'image/jpeg' },
    body: new Uint8Array(bytes),
  });
  const { id, sha256 } = (await stored.json()) as { id: string; sha256: string };
  await writeAsCustomer(phone, { type: 'image', image: { id, mime_type: 'image/jpeg', sha256 } });
}

/** Sends a message as a customer, now, and waits for its event. */
export async function writeAsCustomer(phone: string, members: Record<string, unknown>): Promise<void> {
  const body = JSON.parse(textBody(`wamid.quick-${randomBytes(8).toString('hex')}`, ''));
  const { value } = body.entry[0].changes[0];
  value.contacts[0].wa_id = phone;
  // Later than what other tests send, whose messages have one fixed time.
  const timestamp = String(Math.max(Math.floor(Date.now() / 1000), 1_790_001_000));
  value.messages[0] = { from: phone, id: value.messages[0].id, timestamp, ...members };
  expect(await postUpstream(JSON.stringify(body))).toBe(200);
  await until(async () => {
    const events = await api('GET', '/api/external/events?type=message&limit=20');
    expect(JSON.stringify(events)).toContain(value.messages[0].id);
  });
}

/** Outside of a test `expect.poll` does not work. */
const until = (check: () => Promise<void>) => vi.waitFor(check, { timeout: PATIENCE_MS, interval: 100 });

/** Asks the API of the first tenant; anything but a success fails the test. */
export async function api<T>(method: string, path: string, body?: object): Promise<T> {
  const { apiUrl, tenants } = description();
  const response = await fetch(`${apiUrl}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${tenants[0]?.apiKey}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  expect(response.ok, `${method} ${path}: ${response.status}`).toBe(true);
  return (await response.json()) as T;
}
