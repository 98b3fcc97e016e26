import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { beforeAll, describe, expect, test } from 'vitest';
import type { LoggedRequest } from '../../../../dev/sandbox/upstream-records.ts';
import { giveMedia, makeMediaSlots } from '../../../../src/features/messages/send/upload-media.ts';
import { openSendClient } from '../../../../src/platform/graph/graph-client.ts';
import { type ObjectStore, openObjectStore } from '../../../../src/platform/object-store/object-store.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { mediaUuidOf } from '../../../../src/platform/public-ids.ts';
import { silentLogger } from '../../../support/silent-logger.ts';
import { testSecretBox } from '../../../support/test-accounts.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { OTHER_WABA } from '../../api/api-harness.ts';
import { sendingStackOfFile } from './sending-stack.ts';
import { ask, fileOf, listen, sha256, upload } from './uploaded-files.ts';

const stack = sendingStackOfFile({ HELIOGRAPH_SEND_TIMEOUT_MS: '4000' });
let url: string;

beforeAll(async () => {
  url = await listen(stack);
});

let files = 0;

/** A file that no other test has uploaded. */
async function newFile(type = 'image/png', sizeBytes = 1_000): Promise<{ id: string; bytes: Uint8Array }> {
  files += 1;
  const bytes = fileOf(type, sizeBytes, files);
  const { status, body } = await upload(stack, url, { bytes, type, name: 'mug „1“.png' });
  expect(status).toBe(201);
  return { id: body.id, bytes };
}

const to = () => `+1202556${String(1_000 + files++)}`;
const imageOf = (id: string) => ({
  to: to(),
  type: 'image',
  image: { id, caption: 'New' },
});

/** Uploads that upstream was asked for. */
async function uploads(): Promise<string[]> {
  const response = await fetch(`${stack.sandboxUrl}/sandbox/requests`);
  const { data } = (await response.json()) as { data: LoggedRequest[] };
  return data.filter(({ path }) => path.endsWith('/media')).map(({ id, status }) => `${id} ${status}`);
}

/** What upstream has under an id. */
async function upstreamFile(id: string): Promise<{ sha256: string; mime_type: string }> {
  const response = await fetch(`${stack.sandboxUrl}/v26.0/${id}`, {
    headers: { authorization: 'Bearer EAAG-test-token' },
  });
  return (await response.json()) as never;
}

describe('a message with a file of ours', () => {
  test('reaches upstream with upstream’s id of the same bytes, and shows ours', async () => {
    const file = await newFile();
    const { status, body } = await stack.send(imageOf(file.id));
    expect([status, body.state]).toEqual([200, 'accepted']);
    const [taken] = (await stack.sent()) as { body: { image: { id: string; caption: string } } }[];
    expect(taken?.body.image).toEqual({ id: expect.stringMatching(/^\d+$/), caption: 'New' });
    expect(await upstreamFile(taken?.body.image.id ?? '')).toMatchObject({
      sha256: sha256(file.bytes),
      mime_type: 'image/png',
    });
    const { body: shown } = await stack.get(body.serviceMessageId);
    expect(shown.message.image).toEqual({ id: file.id, caption: 'New' });
  });

  test('may name several, wherever a file can stand', async () => {
    const header = await newFile();
    const first = await newFile('video/mp4');
    const { status } = await stack.send({
      to: to(),
      type: 'template',
      template: {
        name: 'summer_offer',
        language: { code: 'en_US' },
        components: [
          { type: 'header', parameters: [{ type: 'image', image: { id: header.id } }] },
          {
            type: 'carousel',
            cards: [
              {
                card_index: 0,
                components: [{ type: 'header', parameters: [{ type: 'video', video: { id: first.id } }] }],
              },
            ],
          },
        ],
      },
    });
    expect(status).toBe(200);
    expect(JSON.stringify(await stack.sent())).not.toContain('med_');
    expect(await uploads()).toEqual([`${stack.number} 200`, `${stack.number} 200`]);
  });

  test('is given to upstream once per phone number, also by many messages at once', async () => {
    const { number, secondNumber } = stack;
    const { id } = await newFile('application/pdf', 200_000);
    const document = (phoneNumberId: string) => ({
      phoneNumberId,
      to: to(),
      type: 'document',
      document: { id, filename: 'bill.pdf' },
    });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => stack.send(document(index % 2 ? number : secondNumber))),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
    expect((await uploads()).sort()).toEqual([`${number} 200`, `${secondNumber} 200`]);
    await stack.send(document(number));
    expect(await uploads()).toHaveLength(2);
  });

  test('is given anew when upstream’s id has ended, or upstream has lost the file', async () => {
    const { id } = await newFile();
    await stack.send(imageOf(id));
    const end = 'update media_upstream_ids set expires_at = now() where phone_number_id = :number';
    await query(stack.database, end, { number: stack.number });
    await stack.send(imageOf(id));
    expect(await uploads()).toHaveLength(2);
    const [known] = await query<{ id: string }>(
      stack.database,
      `select upstream_media_id as id from media_upstream_ids
        where phone_number_id = :number and upstream_media_id is not null order by expires_at desc`,
      { number: stack.number },
    );
    const headers = { authorization: 'Bearer EAAG-test-token' };
    await fetch(`${stack.sandboxUrl}/v26.0/${known?.id}`, { method: 'DELETE', headers });
    const refused = await stack.send(imageOf(id));
    expect([refused.status, refused.body.error.code]).toEqual([424, 'upstream_refused']);
    expect((await stack.send(imageOf(id))).status).toBe(200);
    expect(await uploads()).toHaveLength(3);
  });

  test('waits while upstream does not take the file, and goes out once', async () => {
    const { id } = await newFile();
    await stack.addFault({ match: 'media_upload', kind: 'status', status: 503, code: 2, times: 1 });
    await stack.addFault({ match: 'media_upload', kind: 'reset', times: 1 });
    const { status } = await stack.send(imageOf(id));
    expect(status).toBe(200);
    expect(await stack.sent()).toHaveLength(1);
    expect(await uploads()).toHaveLength(3);
  });

  test('fails with upstream’s error when upstream refuses the file for good', async () => {
    const { id } = await newFile();
    await stack.addFault({ match: 'media_upload', kind: 'status', status: 400, code: 100, times: 1 });
    const { status, body } = await stack.send(imageOf(id));
    expect([status, body.error.code, body.error.upstream.code]).toEqual([424, 'upstream_refused', 100]);
    expect(await stack.sent()).toEqual([]);
  });

  test('fails when its file is deleted before it goes out', async () => {
    const { id } = await newFile();
    await stack.addFault({ match: 'media_upload', kind: 'status', status: 503, code: 2, times: 1 });
    const sending = stack.send(imageOf(id));
    await eventually('the upload was tried', async () => (await uploads()).length, { is: 1 });
    expect((await ask(stack, `${url}/api/external/media/${id}`, { method: 'DELETE' })).status).toBe(200);
    const { status, body } = await sending;
    expect([status, body.error.code]).toEqual([424, 'message_not_sent']);
    expect(body.error.message).toBe(`The file ${id} was deleted or has expired.`);
    expect(await stack.sent()).toEqual([]);
  });
});

describe('a file on its way to upstream', () => {
  /** One try to give it, for a message of this age. */
  async function give(
    id: string,
    { ageMs, objectStore, graphUrl }: { ageMs: number; objectStore: Store; graphUrl: string },
  ) {
    const { config, database } = stack;
    const sender = openSendClient({ ...config, upstream: { ...config.upstream, graphUrl } });
    const { sending } = config;
    const tools = { database, secretBox: testSecretBox, sender, objectStore, sending, logger: silentLogger };
    const turn = {
      kind: 'media' as const,
      missing: [mediaUuidOf(id) ?? ''],
      phoneNumberId: stack.number,
      ageMs,
    };
    const input = { wabaId: stack.wabaId, messageId: '1' };
    const { signal } = new AbortController();
    const run = { token: 'EAAG-test-token', slots: makeMediaSlots(), attempt: 1, signal };
    return await giveMedia(tools, input, turn, run).finally(() => sender.close());
  }
  type Store = Pick<ObjectStore, 'getRange'>;

  test('waits while the store breaks off, and ends the message when that lasts', async () => {
    const { id } = await newFile();
    const objectStore: Store = {
      getRange: async () =>
        Readable.from(
          (async function* () {
            yield Buffer.alloc(10);
            throw new Error('the answer stalled for 30000 ms');
          })(),
        ),
    };
    const graphUrl = stack.sandboxUrl;
    await expect(give(id, { ageMs: 1_000, objectStore, graphUrl })).rejects.toMatchObject({
      type: 'NotYetSent',
      message: expect.stringContaining('The object store is not available: the answer stalled'),
    });
    const ageMs = (stack.config.sending.retryHours + 1) * 3_600_000;
    expect(await give(id, { ageMs, objectStore, graphUrl })).toMatchObject({
      code: 'media_missing',
      message: `The file ${id} cannot be read.`,
    });
  });

  test('waits when the connection to upstream breaks in its middle', async () => {
    const { id } = await newFile('application/pdf', 6_000_000);
    const server = createServer((incoming) => {
      incoming.on('error', () => undefined);
      incoming.once('data', () => incoming.socket.resetAndDestroy());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const graphUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const objectStore = openObjectStore(stack.config.objectStore);
    await expect(give(id, { ageMs: 1_000, objectStore, graphUrl })).rejects.toMatchObject({
      type: 'NotYetSent',
      message: expect.stringContaining('The upstream platform could not be reached'),
    });
    objectStore.close();
    server.close();
  });
});

describe('a file that cannot be sent', () => {
  const refusal = async (body: object) => {
    const answer = await stack.send(body);
    return [answer.status, answer.body.error?.code, answer.body.error?.param];
  };

  test('is refused with the name of the member, and nothing is queued', async () => {
    const { id } = await newFile();
    const foreign = await newFile();
    await query(
      stack.database,
      'update media_uploads set waba_id = :otherWaba where id = cast(:id as uuid)',
      { otherWaba: OTHER_WABA, id: foreign.id.slice(4) },
    );
    const gone = await newFile();
    await query(
      stack.database,
      `update media_uploads set expires_at = now() - interval '1 second' where id = cast(:id as uuid)`,
      { id: gone.id.slice(4) },
    );
    const count = async () =>
      await query(stack.database, 'select count(*) from messages where waba_id = :wabaId', {
        wabaId: stack.wabaId,
      });
    const before = await count();
    expect(await refusal(imageOf(foreign.id))).toEqual([422, 'unknown_media', 'image/id']);
    expect(await refusal(imageOf(`med_${'0'.repeat(32)}`))).toEqual([422, 'unknown_media', 'image/id']);
    expect(await refusal(imageOf('med_'))).toEqual([422, 'unknown_media', 'image/id']);
    expect(await refusal(imageOf(gone.id))).toEqual([422, 'media_expired', 'image/id']);
    const wrong = { to: to(), type: 'video', video: { id } };
    expect(await refusal(wrong)).toEqual([422, 'wrong_media_type', 'video/id']);
    const header = { type: 'document', document: { id } };
    const interactive = {
      type: 'button',
      header,
      body: { text: 'b' },
      action: { buttons: [{ type: 'reply', reply: { id: 'med_1', title: 't' } }] },
    };
    const buttons = { to: to(), type: 'interactive', interactive };
    expect(await refusal(buttons)).toEqual([422, 'wrong_media_type', 'interactive/header/document/id']);
    const hidden = {
      to: to(),
      type: 'poll',
      poll: { image: { id: 'med_1' } },
    };
    expect(await refusal(hidden)).toEqual([422, 'unknown_media', 'poll/image/id']);
    expect(await count()).toEqual(before);
  });

  test('a key of another WABA cannot send it', async () => {
    const { id } = await newFile();
    const { authorization, number } = await stack.newTenant();
    const body = JSON.stringify({ ...imageOf(id), phoneNumberId: number });
    const headers = { 'content-type': 'application/json' };
    const answer = await ask({ authorization }, `${url}/api/external/messages`, {
      method: 'POST',
      body,
      headers,
    });
    expect([answer.status, answer.body.error.code]).toEqual([422, 'unknown_media']);
  });
});
