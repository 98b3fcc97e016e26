import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { makeForwarder } from '../../../clients/cli/src/forwarder.ts';
import { listenInTest } from '../../support/listen.ts';

const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;

async function receiver(answerMs: () => number) {
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    bodies.push(body);
    setTimeout(() => response.end(), answerMs());
  });
  const port = await listenInTest(server);
  return { url: `http://127.0.0.1:${port}/`, bodies };
}

const eventOf = (n: number, eventId: string) => ({
  id: `evt_${n}`,
  eventType: 'status',
  eventId,
  phoneNumberId: null,
  sequence: n,
  createdAt: '2026-11-21T09:30:00.120Z',
  occurredAt: null,
  body: Buffer.from(JSON.stringify({ n, eventId })),
});

test('1,500 events of 40 lanes arrive once each, in order per lane, and cursors settle in their order', async () => {
  const { url, bodies } = await receiver(() => Math.random() * 5);
  const cursors: number[] = [];
  const forwarder = makeForwarder({
    url,
    secret: SECRET,
    timeoutMs: 5_000,
    maxRefusedMs: 0,
    onForwarded: () => {},
    onSettled: (cursor) => cursors.push(Number(cursor)),
  });
  for (let n = 0; n < 1_500; n += 1) await forwarder.add(eventOf(n, `lane${(n * n) % 40}`), String(n));
  await forwarder.idle();
  const seen = bodies.map((body): { n: number; eventId: string } => JSON.parse(body));
  expect(seen).toHaveLength(1_500);
  for (const lane of Map.groupBy(seen, ({ eventId }) => eventId).values()) {
    const numbers = lane.map(({ n }) => n);
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  }
  expect(cursors).toEqual(cursors.toSorted((a, b) => a - b));
  expect(cursors.at(-1)).toBe(1_499);
});
