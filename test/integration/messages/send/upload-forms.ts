import { Client } from 'minio';
import { expect } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import type { SendingStack } from './sending-stack.ts';
import { ask } from './uploaded-files.ts';

/** Keys of all objects in the store, and uploads that nobody completed. */
export async function storedIn({ config }: SendingStack): Promise<{ keys: string[]; incomplete: string[] }> {
  const { url: storeUrl, accessKey, secretKey, bucket } = config.objectStore;
  const { hostname, port } = new URL(storeUrl);
  const client = new Client({ endPoint: hostname, port: Number(port), useSSL: false, accessKey, secretKey });
  if (!(await client.bucketExists(bucket))) return { keys: [], incomplete: [] };
  const keys: string[] = [];
  for await (const { name } of client.listObjectsV2(bucket, '', true)) keys.push(name ?? '');
  const incomplete: string[] = [];
  for await (const { key } of client.listIncompleteUploads(bucket, '', true)) incomplete.push(key ?? '');
  return { keys, incomplete };
}

/** The files of the tenant that the database knows. */
export async function rowsIn({ database, wabaId }: SendingStack): Promise<{ state: string }[]> {
  return await query(database, 'select state from media_uploads where waba_id = :wabaId', { wabaId });
}

/** Neither the store nor the database has more after `work` than before. */
export async function nothingIsLeftIn(stack: SendingStack, work: () => Promise<void>): Promise<void> {
  const before = await storedIn(stack);
  await work();
  expect(await storedIn(stack)).toEqual(before);
  expect(await rowsIn(stack)).toEqual([]);
}

export const BOUNDARY = 'frontier';
export const CONTENT_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

/** A part of a form with these parameters of its Content-Disposition. */
export const part = (head: string, body: string) =>
  `--${BOUNDARY}\r\nContent-Disposition: form-data; ${head}\r\n\r\n${body}\r\n`;
export const END = `--${BOUNDARY}--\r\n`;

/** A part with a file. */
export const filePart = (body = 'hello', name = 'a.txt', type = 'text/plain', field = 'file') =>
  part(`name="${field}"; filename="${name}"\r\nContent-Type: ${type}`, body);

/** Posts a form as it is written. */
export async function postForm(
  stack: SendingStack,
  url: string,
  body: string,
  headers: Record<string, string> = {},
) {
  return await ask(stack, `${url}/api/external/media`, {
    method: 'POST',
    body,
    headers: { 'content-type': CONTENT_TYPE, ...headers },
  });
}
