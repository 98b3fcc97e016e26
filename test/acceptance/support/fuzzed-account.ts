import { expect } from 'vitest';
import { admin, description } from './stack.ts';
import { postUpstream, textBody } from './upstream.ts';

const WABA = '900000000000303';
const NUMBER = {
  phoneNumberId: '800000000000331',
  displayPhoneNumber: '12025550131',
  verifiedName: 'Fuzzed',
};

/**
 * A tenant of its own with a conversation, events, endpoints and a message, so that some ids exist and nothing that
 * other tests need is changed. Returns its API key.
 */
export async function fuzzedAccount(): Promise<string> {
  const { userId } = await admin('tenant', 'create', '--name', 'Fuzzed Store');
  const number = Object.values(NUMBER).join(':');
  await admin(
    'waba',
    'add',
    '--tenant',
    String(userId),
    '--waba',
    WABA,
    '--number',
    number,
    '--access-token',
    'x',
  );
  const { apiKey } = await admin('key', 'create', '--waba', WABA, '--scopes', 'read,send,manage_webhooks');
  const { sandboxUrl, apiUrl, receiverUrl } = description();
  await post(`${sandboxUrl}/sandbox/phone-numbers`, { wabaId: WABA, ...NUMBER });
  const headers = { authorization: `Bearer ${apiKey}` };
  for (const name of ['one', 'two']) {
    const url = `${receiverUrl}/webhook/${name}`;
    await post(`${apiUrl}/api/external/webhook-endpoints`, { url }, headers);
  }
  for (let n = 0; n < 3; n += 1) {
    const body = textBody(`wamid.fuzzed-${n}`, 'hello', NUMBER.phoneNumberId, WABA);
    expect(await postUpstream(body)).toBe(200);
  }
  const message = { to: '+12025550143', type: 'text', text: { body: 'hello' } };
  const { phoneNumberId } = NUMBER;
  await post(`${apiUrl}/api/external/messages`, { phoneNumberId, ...message }, headers);
  return String(apiKey);
}

async function post(url: string, body: object, headers: Record<string, string> = {}): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  expect(response.ok, `${url}: ${response.status}`).toBe(true);
}
