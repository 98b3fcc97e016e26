import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { findReceivedMedia } from '../../../../src/features/messages/conversations/message-list.ts';
import { ingestHistory } from '../../../../src/ingest/fields/history.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../../support/take-in.ts';
import { eventsOf, finished, JPEG, mediaOf, resultOf, stack, useMediaStack } from './inbound-media.ts';

useMediaStack();

const BUSINESS = '12025550100';
const CUSTOMER = '12025550143';
const newId = () => `wamid.${randomBytes(8).toString('hex')}`;

function body(field: string, value: object): Buffer {
  const metadata = { display_phone_number: BUSINESS, phone_number_id: stack.number };
  const changes = [{ field, value: { messaging_product: 'whatsapp', metadata, ...value } }];
  return Buffer.from(JSON.stringify({ entry: [{ id: stack.wabaId, changes }] }));
}

async function image(caption: string) {
  const { id, sha256 } = await stack.upload(JPEG, 'image/jpeg');
  return { type: 'image', image: { id, sha256, mime_type: 'image/jpeg', caption } };
}

const fromBusiness = { from: BUSINESS, to: CUSTOMER, timestamp: '1790000000' };

describe('the file of a message of the WhatsApp Business app', () => {
  test('is fetched and stored as that of an inbound message, and announced to nobody', async () => {
    const id = newId();
    const echo = { ...fromBusiness, id, ...(await image('Front door')) };
    await takeIn(stack.database, body('smb_message_echoes', { message_echoes: [echo] }));
    const row = await finished(id);
    expect(row).toMatchObject({
      state: 'stored',
      size_bytes: String(JPEG.length),
      served_type: 'image/jpeg',
    });
    expect(await resultOf(row.id)).toMatchObject({ outcome: 'stored' });
    expect(await eventsOf(id)).toEqual([]);
    expect(await findReceivedMedia(stack.database, stack.wabaId, row.id)).toMatchObject({
      mediaState: 'stored',
      mediaType: 'image',
      caption: 'Front door',
      objectKey: row.object_key,
    });
  });

  test('of history comes with the id that upstream sends later, whatever comes first', async () => {
    const [early, late, own] = [newId(), newId(), newId()];
    const placeholder = (id: string) => ({
      from: CUSTOMER,
      id,
      timestamp: '1790000000',
      type: 'media_placeholder',
      history_context: { status: 'READ' },
    });
    const thread = (...ids: string[]) =>
      body('history', {
        history: [
          {
            metadata: { phase: 0, chunk_order: 1, progress: 50 },
            threads: [{ id: CUSTOMER, messages: ids.map(placeholder) }],
          },
        ],
      });
    const files = async (...messages: object[]) =>
      body('history', {
        messages: await Promise.all(messages.map(async (one) => ({ ...one, ...(await image('Old')) }))),
      });
    await takeIn(stack.database, thread(early, own));
    await ingestHistory(stack.database, new AbortController().signal, 0);
    const about = { timestamp: '1790000000' };
    await takeIn(
      stack.database,
      await files({ ...about, from: CUSTOMER, id: early }, { ...about, from: BUSINESS, id: own }),
      await files({ ...about, from: CUSTOMER, id: late }, { ...about, from: BUSINESS, id: newId() }),
    );
    await ingestHistory(stack.database, new AbortController().signal, 0);
    await takeIn(stack.database, thread(late));
    await ingestHistory(stack.database, new AbortController().signal, 0);
    for (const id of [early, late, own]) {
      expect(await finished(id)).toMatchObject({ state: 'stored' });
      expect(await eventsOf(id)).toEqual([]);
    }
    const rows = await query<{ type: string; conversations: string }>(
      stack.database,
      `select type, cast(count(distinct conversation_id) as text) as conversations from messages
        where origin = 'history' and waba_id = :wabaId group by type`,
      { wabaId: stack.wabaId },
    );
    expect(rows).toEqual([{ type: 'image', conversations: '1' }]);
  });

  test('of history is begun after those that come now', async () => {
    const ids = [newId(), newId(), newId()];
    const messages = await Promise.all(
      ids.map(async (id) => ({ from: CUSTOMER, id, timestamp: '1790000000', ...(await image('Old')) })),
    );
    await takeIn(stack.database, body('history', { messages }));
    await ingestHistory(stack.database, new AbortController().signal, 0);
    const due = await query<{ ms: number }>(
      stack.database,
      `select cast(extract(epoch from t.next_start_at - d.created_at) * 1000 as integer) as ms
         from messages m join media d on d.message_id = m.id join workflow_tasks t on t.workflow_id = 'media/' || m.id
        where m.upstream_id = any (:ids::text[]) order by 1`,
      { ids },
    );
    expect(due.at(-1)?.ms).toBeGreaterThanOrEqual(1_000);
    for (const id of ids) expect(await finished(id)).toMatchObject({ state: 'stored' });
  });

  test('is none where upstream gives no id', async () => {
    const id = newId();
    const echo = { ...fromBusiness, id, type: 'image', image: { caption: 'No id' } };
    await takeIn(stack.database, body('smb_message_echoes', { message_echoes: [echo] }));
    await expect(mediaOf(id)).rejects.toThrow('no media');
  });
});
