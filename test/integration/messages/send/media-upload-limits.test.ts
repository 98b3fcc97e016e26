import { request as httpRequest, type IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  forgetMediaUpload,
  removeSpentUploads,
} from '../../../../src/features/messages/send/media-uploads.ts';
import { openObjectStore } from '../../../../src/platform/object-store/object-store.ts';
import { ObjectStoreUnavailable } from '../../../../src/platform/object-store/store-errors.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { mediaUuidOf } from '../../../../src/platform/public-ids.ts';
import { collectGarbage } from '../../../support/collect-garbage.ts';
import { silentLogger } from '../../../support/silent-logger.ts';
import { sendingStackOfFile } from './sending-stack.ts';
import { CONTENT_TYPE, END, filePart, nothingIsLeftIn, postForm, rowsIn, storedIn } from './upload-forms.ts';
import { ask, fileOf, listen, upload } from './uploaded-files.ts';

const stack = sendingStackOfFile();
let url: string;

beforeAll(async () => {
  url = await listen(stack);
});

const stored = () => storedIn(stack);
const rows = () => rowsIn(stack);
const nothingIsLeft = (work: () => Promise<void>) => nothingIsLeftIn(stack, work);
const sendRaw = (body: string, headers: Record<string, string> = {}) => postForm(stack, url, body, headers);

describe('the limits', () => {
  const KIB = 1024;
  const webp = (sizeBytes: number, isAnimated: boolean) => {
    const bytes = new Uint8Array(sizeBytes);
    bytes.set(Buffer.from('RIFF\0\0\0\0WEBPVP8X\0\0\0\0'));
    bytes[20] = isAnimated ? 0x02 : 0x10;
    return bytes;
  };

  test.each<[string, string, Uint8Array<ArrayBuffer>, number]>([
    ['an image of 5 MiB', 'image/jpeg', fileOf('image/jpeg', 5 * KIB * KIB), 201],
    ['a larger image', 'image/jpeg', new Uint8Array(5 * KIB * KIB + 1), 413],
    ['an audio file of 16 MiB', 'audio/mpeg', new Uint8Array(16 * KIB * KIB), 201],
    ['a larger video', 'video/mp4', new Uint8Array(16 * KIB * KIB + 1), 413],
    ['a still sticker of 100 KiB', 'image/webp', webp(100 * KIB, false), 201],
    ['a larger still sticker', 'image/webp', webp(100 * KIB + 1, false), 413],
    ['an animated sticker of 500 KiB', 'image/webp', webp(500 * KIB, true), 201],
    ['a larger animated sticker', 'image/webp', webp(500 * KIB + 1, true), 413],
  ])('%s', async (_name, type, bytes, expected) => {
    const before = await stored();
    const { status, body } = await upload(stack, url, { bytes, type });
    expect(status).toBe(expected);
    if (expected === 201) return;
    expect(body.error).toMatchObject({ code: 'file_too_large', param: 'file' });
    expect(await rows()).toEqual([]);
    expect(await stored()).toEqual(before);
  });

  test.each([
    ['blanks', `a${' '.repeat(70_000)}b`],
    ['dots', `${'.'.repeat(70_000)}b`],
    ['8,001 characters', 'a'.repeat(8_001)],
  ])('a file name of %s is refused, and takes no time', async (_name, fileName) => {
    const before = process.cpuUsage();
    const { status, body } = await sendRaw(filePart('hello', fileName) + END);
    const { user, system } = process.cpuUsage(before);
    expect([status, body.error]).toMatchObject([400, { code: 'invalid_parameter', param: 'file' }]);
    // By the square of its length it would be several seconds.
    expect((user + system) / 1_000).toBeLessThan(1_500);
  });

  test('a file name of 8,000 characters is cut, and its type is heeded', async () => {
    const { status, body } = await sendRaw(filePart('hello', `${'é'.repeat(7_996)}.txt`) + END);
    expect([status, body]).toMatchObject([201, { mimeType: 'text/plain' }]);
  });

  test('a document without end is refused at 100 MiB while it streams, and nothing is left', async () => {
    await nothingIsLeft(async () => {
      const chunk = Buffer.alloc(1024 * 1024, 'x');
      const [head = ''] = filePart('', 'a.pdf', 'application/pdf').split(/(?<=\r\n\r\n)/);
      let sentMib = 0;
      const body = async function* () {
        yield Buffer.from(head);
        for (; sentMib < 120; sentMib += 1) yield chunk;
      };
      const answer = await ask(stack, `${url}/api/external/media`, {
        method: 'POST',
        body: Readable.toWeb(Readable.from(body())) as never,
        duplex: 'half',
        headers: { 'content-type': CONTENT_TYPE },
      } as RequestInit);
      expect([answer.status, answer.body.error.code]).toEqual([413, 'file_too_large']);
    });
  });

  test('a body that says to be larger than every file is refused before it is read', async () => {
    const status = await new Promise<number>((resolve, reject) => {
      const outgoing = httpRequest(`${url}/api/external/media`, {
        method: 'POST',
        headers: {
          authorization: stack.authorization,
          'content-type': CONTENT_TYPE,
          'content-length': 200_000_000,
        },
      });
      outgoing.on('response', (response) => {
        resolve(response.statusCode ?? 0);
        outgoing.destroy();
      });
      outgoing.on('error', reject);
      outgoing.flushHeaders();
    });
    expect(status).toBe(413);
  });

  test('an upload that comes to a halt is refused with 408, and nothing is left', async () => {
    await nothingIsLeft(async () => {
      const outgoing = httpRequest(`${url}/api/external/media`, {
        method: 'POST',
        headers: { authorization: stack.authorization, 'content-type': CONTENT_TYPE },
      });
      outgoing.on('error', () => undefined);
      outgoing.write(`${filePart('', 'a.pdf', 'application/pdf').slice(0, -2)}x`);
      const status = await new Promise<number | undefined>((resolve) => {
        outgoing.on('response', (response) => resolve(response.statusCode));
      });
      expect(status).toBe(408);
      outgoing.destroy();
    });
  });

  test('a tenant uploads six files at a time, and no more', async () => {
    const head = filePart('', 'a.pdf', 'application/pdf').slice(0, -2);
    const open = Array.from({ length: 6 }, () => {
      const outgoing = httpRequest(`${url}/api/external/media`, {
        method: 'POST',
        headers: { authorization: stack.authorization, 'content-type': CONTENT_TYPE },
      });
      outgoing.on('error', () => undefined);
      outgoing.write(`${head}x`);
      return outgoing;
    });
    await expect.poll(rows).toHaveLength(6);
    const seventh = await sendRaw(filePart() + END);
    expect([seventh.status, seventh.body.error.code]).toEqual([429, 'too_many_uploads']);
    expect(seventh.headers.get('retry-after')).toBe('2');
    for (const outgoing of open) outgoing.destroy();
    await expect.poll(rows).toEqual([]);
    expect((await sendRaw(filePart() + END)).status).toBe(201);
  });

  test('clients that are gone before their request is looked at leave no upload open', async () => {
    const { server } = stack.app;
    let gone = 0;
    const countGone = (incoming: IncomingMessage) => incoming.once('close', () => (gone += 1));
    server.on('request', countGone);
    await stack.database.transaction(async (trx) => {
      // Nobody's key is known until they have left.
      await query(trx, 'lock table api_keys in access exclusive mode');
      for (let count = 0; count < 6; count += 1) {
        const outgoing = httpRequest(`${url}/api/external/media`, {
          method: 'POST',
          headers: { authorization: stack.authorization, 'content-type': CONTENT_TYPE },
        });
        outgoing.on('error', () => undefined);
        outgoing.write(filePart(), () => setTimeout(() => outgoing.destroy(), 100));
      }
      await expect.poll(() => gone).toBe(6);
    });
    server.off('request', countGone);
    // Its key is looked up after theirs.
    expect((await sendRaw(filePart() + END)).status).toBe(201);
    expect((await sendRaw(filePart() + END)).status).toBe(201);
  });

  test('a document of 100 MB passes through without being held in memory', async () => {
    const chunk = Buffer.alloc(256 * 1024, 'y');
    const sizeBytes = 399 * chunk.length;
    const head = Buffer.from(filePart('', 'a.pdf', 'application/pdf').slice(0, -2));
    const tail = Buffer.from(`\r\n${END}`);
    const heldBytes = () => {
      collectGarbage();
      return process.memoryUsage().arrayBuffers;
    };
    let peak = 0;
    const body = async function* () {
      yield head;
      for (let sent = 0; sent < 399; sent += 1) {
        if (sent % 40 === 39) peak = Math.max(peak, heldBytes());
        yield chunk;
      }
      yield tail;
    };
    const before = heldBytes();
    const stream = Readable.toWeb(Readable.from(body())) as never;
    const options = { method: 'POST', duplex: 'half', headers: { 'content-type': CONTENT_TYPE } };
    const answer = await ask(stack, `${url}/api/external/media`, { ...options, body: stream } as RequestInit);
    expect([answer.status, answer.body.sizeBytes]).toEqual([201, sizeBytes]);
    expect(peak).toBeGreaterThan(0);
    expect(peak - before).toBeLessThan(sizeBytes / 2);
  });
});

describe('housekeeping', () => {
  test('removes files that have expired, were deleted, or were lost on their way, and no others', async () => {
    const objectStore = openObjectStore(stack.config.objectStore);
    const ids: string[] = [];
    for (let count = 0; count < 4; count += 1) {
      const { body } = await upload(stack, url, { bytes: fileOf('image/png', 9 + count), type: 'image/png' });
      ids.push(mediaUuidOf(body.id) ?? '');
    }
    const [expired = '', deleted = '', lost = '', good = ''] = ids;
    const set = async (id: string, change: string) =>
      await query(stack.database, `update media_uploads set ${change} where id = :id`, { id });
    await set(expired, "expires_at = now() - interval '25 hours'");
    await set(deleted, "state = 'deleted'");
    await set(lost, "state = 'uploading', created_at = now() - interval '2 hours'");
    const keysOf = async () =>
      await query<{ id: string; key: string }>(
        stack.database,
        'select id, object_key as key from media_uploads where waba_id = :wabaId',
        { wabaId: stack.wabaId },
      );
    const before = await keysOf();
    const away = openObjectStore({ ...stack.config.objectStore, url: 'http://127.0.0.1:1' });
    await removeSpentUploads({ database: stack.database, objectStore: away, logger: silentLogger });
    expect(await keysOf()).toHaveLength(4);
    await removeSpentUploads({ database: stack.database, objectStore, logger: silentLogger });
    expect((await keysOf()).map(({ id }) => id)).toEqual([good]);
    const { keys } = await stored();
    for (const { id, key } of before) expect([id, keys.includes(key)]).toEqual([id, id === good]);
    await forgetMediaUpload(stack.database, good);
    objectStore.close();
    away.close();
  });

  test('goes on after files that cannot be removed, up to five in a row, and warns once', async () => {
    const remaining = async () =>
      (
        await query<{ key: string }>(
          stack.database,
          'select object_key as key from media_uploads where waba_id = :wabaId order by id',
          { wabaId: stack.wabaId },
        )
      ).map(({ key }) => key);
    const addSpent = async (key: string, index: number) =>
      await query(
        stack.database,
        `insert into media_uploads (id, waba_id, object_key, state, expires_at)
         values (cast(:index as uuid), :wabaId, :key, 'deleted', now())`,
        { index: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`, wabaId: stack.wabaId, key },
      );
    const run = async () => {
      const asked: string[] = [];
      const warnings: unknown[] = [];
      const remove = async (key: string) => {
        asked.push(key);
        if (key.startsWith('stuck')) throw new ObjectStoreUnavailable('access denied');
        return 0;
      };
      const logger = { ...silentLogger, warn: (fields: unknown) => warnings.push(fields) } as never;
      await removeSpentUploads({ database: stack.database, objectStore: { remove }, logger });
      return { asked, warnings };
    };
    const keys = [
      'stuck-1',
      'stuck-2',
      'good-1',
      'stuck-3',
      ...Array.from({ length: 250 }, (_, n) => `good-x${n}`),
    ];
    for (const [index, key] of keys.entries()) await addSpent(key, index);
    const first = await run();
    expect(first.asked).toEqual(keys);
    expect(first.warnings).toEqual([{ err: expect.any(ObjectStoreUnavailable), failures: 3 }]);
    expect(await remaining()).toEqual(['stuck-1', 'stuck-2', 'stuck-3']);
    for (let index = 4; index < 10; index += 1) await addSpent(`stuck-${index}`, 1_000 + index);
    expect((await run()).asked).toHaveLength(5);
    expect(await remaining()).toHaveLength(9);
  });
});
