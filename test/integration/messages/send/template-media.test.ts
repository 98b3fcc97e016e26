import { beforeAll, describe, expect, test } from 'vitest';
import { queryValue } from '../../../../src/platform/postgres/sql.ts';
import { sendingStackOfFile } from './sending-stack.ts';
import { ask, fileOf, listen } from './uploaded-files.ts';

const stack = sendingStackOfFile();
let url: string;

beforeAll(async () => {
  url = await listen(stack);
});

async function give(file: Blob | null, key?: string) {
  const form = new FormData();
  if (file !== null) form.set('file', file, 'summer.jpg');
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  return await ask(stack, `${url}/api/external/template-media`, { method: 'POST', body: form, headers });
}

const picture = (sizeBytes = 400_000) =>
  new Blob([fileOf('image/jpeg', sizeBytes, 7)], { type: 'image/jpeg' });

const kept = async () =>
  await queryValue<string>(
    stack.database,
    `select count(*) as "count" from media_uploads where state <> 'deleted'`,
  );

describe('the example of a template header', () => {
  test('is given to upstream, whose handle makes a template with a picture; it is not kept', async () => {
    const before = await kept();
    const { status, body } = await give(picture());
    expect([status, body]).toEqual([200, { handle: expect.stringMatching(/^4::aW1hZ2UvanBlZw==:/) }]);
    expect(await kept()).toBe(before);
    const header = (handle: string) => ({
      name: 'with_picture',
      language: 'en_US',
      category: 'UTILITY',
      components: [{ type: 'HEADER', format: 'IMAGE', example: { header_handle: [handle] } }],
    });
    const make = async (handle: string) => {
      const address = `${stack.sandboxUrl}/v26.0/${stack.wabaId}/message_templates`;
      const headers = { authorization: 'Bearer EAAG-test-token', 'content-type': 'application/json' };
      return (await fetch(address, { method: 'POST', headers, body: JSON.stringify(header(handle)) })).status;
    };
    expect([await make(body.handle), await make('4::made-up')]).toEqual([200, 400]);
  });

  test('is refused where there is none, of a wrong type, and where it is too large', async () => {
    const at = `${url}/api/external/template-media`;
    expect((await ask(stack, at, { method: 'POST' })).status).toBe(415);
    expect(await give(null)).toMatchObject({ status: 400, body: { error: { param: 'file' } } });
    for (const type of ['image/webp', 'video/3gpp', 'audio/ogg', 'text/plain', 'application/zip']) {
      const refused = await give(new Blob(['RIFF'], { type }));
      expect([type, refused]).toMatchObject([
        type,
        { status: 422, body: { error: { code: 'unsupported_file_type' } } },
      ]);
    }
    const other = await give(new Blob([fileOf('image/png', 100)], { type: 'image/jpeg' }));
    expect(other).toMatchObject({ status: 422, body: { error: { code: 'unsupported_file_type' } } });
    expect(await give(picture(5 * 1024 * 1024 + 1))).toMatchObject({
      status: 413,
      body: { error: { code: 'file_too_large' } },
    });
  });

  test('is refused as upstream refuses it, at the beginning and with the bytes, and nothing is kept', async () => {
    const before = await kept();
    for (const id of ['app', 'bytes']) {
      await stack.addFault({
        match: 'upload_session',
        kind: 'status',
        status: 400,
        code: 100,
        times: 1,
        id,
      });
      expect(await give(picture())).toMatchObject({
        status: 424,
        body: { error: { code: 'upstream_refused' } },
      });
    }
    await stack.addFault({ match: 'upload_session', kind: 'status', status: 503, times: 1 });
    expect(await give(picture())).toMatchObject({
      status: 503,
      body: { error: { code: 'upstream_unavailable' } },
    });
    expect(await kept()).toBe(before);
  });
});
