import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { addEndpoint } from '../../../src/features/endpoints/endpoints.ts';
import { sendTestEvent } from '../../../src/features/endpoints/test-event.ts';
import { takePendingMedia } from '../../../src/features/messages/media/media.ts';
import { makeMediaUrls } from '../../../src/features/messages/media/media-urls.ts';
import { publishStored } from '../../../src/features/messages/media/store-media.ts';
import { enrichAndRelease } from '../../../src/features/messages/orders/release-order.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../support/take-in.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { fixtureBody, fixtureNames } from '../../support/upstream-fixtures.ts';
import { startReceiving } from './meta-receiver.ts';

const WABAS = ['900000000000101', '900000000000202'];
const FORMATS = ['heliograph', 'meta'];
/** What becomes one of the six events, but for the one with a member that 0.1.0 left out. */
const FIXTURES = fixtureNames().filter(
  (name) => /^(batch|in|odd|pay|st)_/.test(name) && name !== 'in_text_conversation_context',
);
const PUBLIC_URL = 'https://gateway.example';

/** A fixture as upstream sends it: without the white space that is there for readers. */
function asSent(name: string): Buffer {
  const spaces = /("(?:[^"\\]|\\.)*")|\s+/g;
  return Buffer.from(fixtureBody(name).toString().replace(spaces, '$1'));
}

/** Announces every file and releases every order, as their workflows do. */
async function finishMessages(database: Database): Promise<void> {
  const sealed = { database, secretBox: testSecretBox };
  const media = await query<{ wabaId: string; messageId: string }>(
    database,
    `select waba_id as "wabaId", message_id as "messageId" from media where state = 'pending' order by message_id`,
  );
  const mediaUrls = makeMediaUrls({ ...sealed, publicUrl: PUBLIC_URL, ttlSeconds: 0 });
  const fetched = { servedType: 'image/jpeg', mimeType: 'image/jpeg', sizeBytes: 1, sha256: '00' };
  for (const input of media) {
    const objectKey = `file-of-${input.messageId}`;
    const pending = await takePendingMedia(database, { ...input, objectKey });
    if (pending === null) throw new Error('the media does not wait');
    await publishStored({ database, mediaUrls }, input, pending, fetched);
  }
  const orders = await query<{ wabaId: string; orderId: string }>(
    database,
    'select waba_id as "wabaId", id as "orderId" from orders order by id',
  );
  const graph = { findProducts: () => Promise.reject(new Error('the WABA has no token')) };
  for (const input of orders) await enrichAndRelease({ ...sealed, graph, publicUrl: PUBLIC_URL }, input);
}

/** Nothing but the moment differs between two runs. */
function withoutMoment(body: string): string {
  return body
    .replace(/("occurredAt":")\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"/, '$1<moment>"')
    .replace(/("id":"test_\d+","timestamp":")\d{10}"/, '$1<moment>"');
}

/** What endpoints of each format receive: a line with the type and the body of each webhook. */
async function receivedLines(): Promise<Map<string, string[]>> {
  const { database, tools, receiver, attempt } = await startReceiving();
  const endpoints: { id: string; wabaId: string; format: string }[] = [];
  for (const format of FORMATS)
    for (const wabaId of WABAS) {
      const appSecret = format === 'meta' ? { appSecret: 'a secret of 16 characters' } : {};
      const { id } = await addEndpoint(tools, wabaId, { url: receiver.url, format, ...appSecret });
      endpoints.push({ id, wabaId, format });
    }
  for (const name of FIXTURES) await takeIn(database, asSent(name));
  await finishMessages(database);
  const startDelivery = () => Promise.reject(new Error('Temporal is away'));
  const received = new Map<string, string[]>();
  for (const { id, wabaId, format } of endpoints) {
    await sendTestEvent({ ...tools, startDelivery, waitMs: 0 }, wabaId, id);
    const lines = (await attempt(id)).map(
      ({ headers, body }) => `${headers['x-service-event-type']} ${withoutMoment(body)}\n`,
    );
    received.set(format, [...(received.get(format) ?? []), ...lines].sort());
  }
  return received;
}

/**
 * Made with the release before the platform of 2026 was handled (0.1.0). A tenant's parser and its checks of signatures were
 * written for these bytes: a line that changes is a break of the contract. A new fixture adds its lines.
 */
test('the six events, in both formats, have the bytes that they always had', async () => {
  const received = await receivedLines();
  for (const format of FORMATS) {
    const lines = received.get(format) ?? [];
    const golden = readFileSync(new URL(`../../fixtures/golden-bodies/${format}.txt`, import.meta.url));
    expect(lines).toEqual(golden.toString().match(/.*\n/g));
    expect(Buffer.from(lines.join('')).equals(golden)).toBe(true);
  }
});
