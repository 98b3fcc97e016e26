import { setTimeout as sleep } from 'node:timers/promises';
import type {
  EmbeddedDescription,
  EmbeddedTenant,
} from '../../src/platform/local-stack/embedded-description.ts';

/** How the tenant's server treats webhooks, in the words of the sample receiver. */
export type Behaviour = { mode: 'ok' | 'status' | 'slow'; status?: number; delayMs?: number };

const TEXTS = ['Good morning!', 'Where is my parcel?', 'Do you take cards?', 'Thank you!'];

/** Plays customers and the server of a tenant of the demonstration, by the sandbox and the sample receiver. */
export function trafficOf(stack: EmbeddedDescription, { phoneNumberIds, wabaId }: EmbeddedTenant) {
  const [phoneNumberId = ''] = phoneNumberIds;
  const inbound = (body: object) => post(`${stack.sandboxUrl}/sandbox/inbound`, { phoneNumberId, ...body });
  const message = (n: number) => {
    const from = `12025550${100 + (n % 100)}`;
    return inbound({ type: 'text', from, name: `Customer ${n % 100}`, body: TEXTS[n % TEXTS.length] });
  };
  let statuses = 0;
  const status = () =>
    inbound({
      type: 'status',
      id: `wamid.SENT${statuses++}`,
      status: 'delivered',
      recipientId: '12025550143',
    });
  return {
    /** One after the other, a fifth of them statuses. */
    events: async (count: number, restMs: number) => {
      for (let n = 0; n < count; n += 1) {
        await (n % 5 === 4 ? status() : message(n));
        await sleep(restMs);
      }
    },
    /** All at once. */
    burst: async (count: number) => {
      await Promise.all(
        Array.from({ length: 16 }, async (_, lane) => {
          for (let n = lane; n < count; n += 16) await message(n);
        }),
      );
    },
    answer: (behaviour: Behaviour) =>
      post(`${stack.receiverUrl}/control/behaviour`, { name: wabaId, ...behaviour }),
  };
}

async function post(url: string, body: object): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} returned ${response.status}: ${text}`);
}
