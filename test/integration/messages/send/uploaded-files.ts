import { createHash } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import type { SendingStack } from './sending-stack.ts';

/** Listens, so that requests are streamed and not injected; returns the address. */
export async function listen(stack: SendingStack): Promise<string> {
  await stack.app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = stack.app.server.address() as AddressInfo;
  return `http://127.0.0.1:${port}`;
}

export type Answer = { status: number; headers: Headers; body: ReturnType<typeof JSON.parse> };

/** A request of the External API with the stack's key. */
export async function ask(
  stack: Pick<SendingStack, 'authorization'>,
  url: string,
  init: RequestInit = {},
): Promise<Answer> {
  const headers = { authorization: stack.authorization, ...init.headers };
  const response = await fetch(url, { ...init, headers });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

/** Uploads one file as a form does. */
export async function upload(
  stack: SendingStack,
  url: string,
  file: { bytes: Uint8Array<ArrayBuffer>; type: string; name?: string },
): Promise<Answer> {
  const form = new FormData();
  form.set('file', new Blob([file.bytes], { type: file.type }), file.name ?? 'file');
  return await ask(stack, `${url}/api/external/media`, { method: 'POST', body: form });
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

const FIRST_BYTES: Readonly<Record<string, string>> = {
  'image/png': '\x89PNG\r\n\x1a\n',
  'image/jpeg': '\xff\xd8\xff\xe0',
  'video/mp4': '\0\0\0\x20ftypisom',
};

/** Bytes of a file of a type, full of `filler` behind what such a file begins with. */
export function fileOf(type: string, sizeBytes: number, filler = 0): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(sizeBytes).fill(filler);
  bytes.set(Buffer.from(FIRST_BYTES[type] ?? '', 'latin1'));
  return bytes;
}
