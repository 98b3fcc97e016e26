import { request as httpRequest } from 'node:http';
import { beforeAll, describe, expect, test } from 'vitest';
import { openObjectStore } from '../../../../src/platform/object-store/object-store.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { addKey, OTHER_WABA } from '../../api/api-harness.ts';
import { sendingStackOfFile } from './sending-stack.ts';
import {
  BOUNDARY,
  CONTENT_TYPE,
  END,
  filePart,
  nothingIsLeftIn,
  part,
  postForm,
  rowsIn,
  storedIn,
} from './upload-forms.ts';
import { ask, fileOf, listen, sha256, upload } from './uploaded-files.ts';

const stack = sendingStackOfFile();
let url: string;

beforeAll(async () => {
  url = await listen(stack);
});

const stored = () => storedIn(stack);
const rows = () => rowsIn(stack);
const nothingIsLeft = (work: () => Promise<void>) => nothingIsLeftIn(stack, work);
const sendRaw = (body: string, headers: Record<string, string> = {}) => postForm(stack, url, body, headers);

describe('an upload', () => {
  test('is stored byte for byte, described, shown and deleted', async () => {
    const bytes = new Uint8Array(6_000_000).map((_, index) => index % 251);
    const { status, headers, body } = await upload(stack, url, {
      bytes,
      type: 'application/pdf',
      name: 'bill – März.pdf',
    });
    expect([status, body]).toEqual([
      201,
      {
        id: expect.stringMatching(/^med_[0-9a-f]{32}$/),
        mediaType: 'document',
        mimeType: 'application/pdf',
        sizeBytes: bytes.length,
        sha256: sha256(bytes),
        fileName: 'bill – März.pdf',
        createdAt: expect.any(String),
        expiresAt: expect.any(String),
      },
    ]);
    expect(headers.get('location')).toBe(`/api/external/media/${body.id}`);
    const days = (Date.parse(body.expiresAt) - Date.parse(body.createdAt)) / 86_400_000;
    expect(days).toBeCloseTo(30, 3);
    const keyOf = 'select object_key as key from media_uploads where waba_id = :wabaId';
    const [row] = await query<{ key: string }>(stack.database, keyOf, { wabaId: stack.wabaId });
    const store = openObjectStore(stack.config.objectStore);
    const kept = Buffer.concat(await (await store.getRange(row?.key ?? '')).toArray());
    store.close();
    expect(kept.equals(bytes)).toBe(true);

    const path = `${url}/api/external/media/${body.id}`;
    expect((await ask(stack, path)).body).toEqual(body);
    expect((await ask(stack, path, { method: 'DELETE' })).body).toEqual({ id: body.id, deleted: true });
    expect((await ask(stack, path)).status).toBe(404);
    expect((await ask(stack, path, { method: 'DELETE' })).status).toBe(404);
    expect((await stored()).keys).not.toContain(row?.key);
    expect(await rows()).toEqual([]);
  });

  test('of another WABA answers as one that does not exist', async () => {
    const { body } = await upload(stack, url, { bytes: fileOf('image/png', 9), type: 'image/png' });
    const other = await addKey(stack.database, OTHER_WABA);
    for (const method of ['GET', 'DELETE']) {
      expect((await ask(other, `${url}/api/external/media/${body.id}`, { method })).status).toBe(404);
      for (const id of ['1', 'med_', `med_${'0'.repeat(32)}`, `${body.id}0`, '%00', 'evt_x']) {
        expect((await ask(stack, `${url}/api/external/media/${id}`, { method })).status).toBe(404);
      }
    }
    expect((await ask(stack, `${url}/api/external/media/${body.id}`)).status).toBe(200);
  });

  test.each([
    ['the part’s Content-Type', filePart() + END, 'text/plain'],
    ['a field before the file', part('name="type"', 'application/pdf') + filePart() + END, 'application/pdf'],
    [
      'a field behind the file',
      filePart('OggS', 'a', 'application/octet-stream') + part('name="type"', 'audio/ogg; codecs=opus') + END,
      'audio/ogg',
    ],
    [
      'a form as upstream wants it',
      part('name="messaging_product"', 'whatsapp') + filePart('%PDF-1.7', 'a.pdf', 'APPLICATION/PDF') + END,
      'application/pdf',
    ],
  ])('has the type that %s says', async (_name, form, mimeType) => {
    expect(await sendRaw(form)).toMatchObject({ status: 201, body: { mimeType } });
  });

  test.each([
    ['../../etc/passwd', 'passwd'],
    ['C:\\\\temp\\\\a.txt', 'a.txt'],
    ['..', null],
    ['a\u202etxt.exe', 'atxt.exe'],
    ['x'.repeat(5_000), 'x'.repeat(240)],
    ['<script>.txt', '_script_.txt'],
  ])('with the file name %s keeps a harmless one', async (given, kept) => {
    const { status, body } = await sendRaw(filePart('x', given) + END);
    expect([status, body.fileName]).toEqual([201, kept]);
  });
});

describe('what is no upload', () => {
  test.each([
    ['a JPEG of one byte', 'x', 'image/jpeg', 'does not begin as image/jpeg does.'],
    ['a document declared as an image', '%PDF-1.7', 'image/png', 'but as application/pdf does'],
    ['sound declared as text', 'OggS', 'text/plain', 'but as audio/ogg does'],
    ['text declared as a video', 'hello', 'video/mp4', 'does not begin as video/mp4 does.'],
    ['a page declared as a sticker', '<!doctype html>', 'image/webp', 'does not begin as image/webp does.'],
  ])('%s is refused with what is wrong, and nothing is left of it', async (_name, bytes, type, message) => {
    await nothingIsLeft(async () => {
      const { status, body } = await sendRaw(filePart(bytes, 'a', type) + END);
      expect([status, body.error]).toMatchObject([422, { code: 'unsupported_file_type', param: 'file' }]);
      expect(body.error.message).toContain(message);
    });
  });

  test.each([
    ['a table of an old program', 'a;b\r\n1;2', 'application/vnd.ms-excel'],
    ['a document with a password', '\u00d0\u00cf', 'application/msword'],
    ['a text', 'hello', 'text/plain'],
    ['a form with a mark before it', '\ufeff%PDF-1.7', 'application/pdf'],
  ])('%s is one', async (_name, bytes, type) => {
    expect((await sendRaw(filePart(bytes, 'a', type) + END)).status).toBe(201);
  });

  const TWO = filePart() + filePart();
  test.each<[string, string, number, string, string | null]>([
    ['no file', END, 400, 'invalid_parameter', 'file'],
    ['an empty body', '', 400, 'invalid_parameter', 'file'],
    ['two files', TWO + END, 400, 'invalid_parameter', 'file'],
    ['three files', TWO + filePart() + END, 400, 'invalid_parameter', 'file'],
    ['an empty file', filePart('') + END, 400, 'invalid_parameter', 'file'],
    [
      'a file in another field',
      filePart('x', 'a', 'text/plain', 'upload') + END,
      400,
      'invalid_parameter',
      'upload',
    ],
    ['a text in place of the file', part('name="file"', 'x') + END, 400, 'invalid_parameter', 'file'],
    ['an unknown field', part('name="caption"', 'x') + filePart() + END, 400, 'invalid_parameter', 'caption'],
    [
      'an unknown field behind the file',
      filePart() + part('name="caption"', 'x') + END,
      400,
      'invalid_parameter',
      'caption',
    ],
    [
      'a field given twice',
      part('name="type"', 'a') + part('name="type"', 'b') + filePart() + END,
      400,
      'invalid_parameter',
      'type',
    ],
    [
      'another product',
      part('name="messaging_product"', 'x') + filePart() + END,
      400,
      'invalid_parameter',
      'messaging_product',
    ],
    [
      'a huge field',
      part('name="type"', 'x'.repeat(5_000)) + filePart() + END,
      400,
      'invalid_parameter',
      'type',
    ],
    [
      'a type that upstream does not take',
      filePart('x', 'a', 'text/html') + END,
      422,
      'unsupported_file_type',
      'type',
    ],
    ['no type', filePart('x', 'a', 'application/octet-stream') + END, 422, 'unsupported_file_type', 'type'],
    ['a form that ends in the file', filePart().slice(0, -3), 400, 'invalid_multipart', null],
    ['a form that ends behind the file', filePart(), 400, 'invalid_multipart', null],
    ['a form of another boundary', filePart().replaceAll(BOUNDARY, 'other'), 400, 'invalid_multipart', null],
    [
      'a field called __proto__',
      part('name="__proto__"', 'x') + filePart() + END,
      400,
      'invalid_multipart',
      null,
    ],
    ['text', 'hello', 400, 'invalid_multipart', null],
  ])('%s is refused, and nothing is left of it', async (_name, form, status, code, param) => {
    await nothingIsLeft(async () => {
      const answer = await sendRaw(form);
      expect([answer.status, answer.body.error.code, answer.body.error.param]).toEqual([status, code, param]);
    });
  });

  test.each([
    ['JSON', '{}', 'application/json'],
    ['nothing', undefined, undefined],
    ['a form without a boundary', filePart() + END, 'multipart/form-data'],
    ['a URL-encoded form', 'file=1', 'application/x-www-form-urlencoded'],
  ])('%s is answered clearly', async (_name, payload, contentType) => {
    const { statusCode, json } = await stack.app.inject({
      method: 'POST',
      url: '/api/external/media',
      headers: {
        authorization: stack.authorization,
        ...(contentType !== undefined && { 'content-type': contentType }),
      },
      ...(payload !== undefined && { payload }),
    });
    const isForm = contentType === 'multipart/form-data';
    expect([statusCode, json().error.code]).toEqual(
      isForm ? [400, 'invalid_multipart'] : [415, 'unsupported_media_type'],
    );
  });

  test('a form is refused by every other route', async () => {
    const answer = await ask(stack, `${url}/api/external/messages`, {
      method: 'POST',
      body: filePart() + END,
      headers: { 'content-type': CONTENT_TYPE },
    });
    expect([answer.status, answer.body.error.code]).toEqual([415, 'unsupported_media_type']);
  });

  test('a Content-Length that is shorter than the form leaves nothing', async () => {
    await nothingIsLeft(async () => {
      const form = Buffer.from(filePart() + END);
      const status = await new Promise<number>((resolve, reject) => {
        const outgoing = httpRequest(`${url}/api/external/media`, {
          method: 'POST',
          headers: {
            authorization: stack.authorization,
            'content-type': CONTENT_TYPE,
            'content-length': form.length - 40,
            connection: 'close',
          },
        });
        outgoing.on('response', (response) => resolve(response.statusCode ?? 0));
        outgoing.on('error', reject);
        outgoing.end(form.subarray(0, form.length - 40));
      });
      expect(status).toBe(400);
    });
  });

  test('a client that goes away in the middle leaves nothing', async () => {
    const before = await stored();
    const outgoing = httpRequest(`${url}/api/external/media`, {
      method: 'POST',
      headers: {
        authorization: stack.authorization,
        'content-type': CONTENT_TYPE,
        'content-length': 90_000_000,
      },
    });
    outgoing.on('error', () => undefined);
    outgoing.write(filePart('x'.repeat(12_000_000), 'a.pdf', 'application/pdf').slice(0, -2));
    await expect.poll(rows).toEqual([{ state: 'uploading' }]);
    outgoing.destroy();
    await expect.poll(rows).toEqual([]);
    expect(await stored()).toEqual(before);
  });
});
