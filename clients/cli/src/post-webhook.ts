import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { linkedAbort } from '../../../src/platform/http/linked-abort.ts';

export type WebhookResponse = {
  status: number;
  location: string | null;
  /** Its first part. */
  body: string;
  isHtml: boolean;
};

const MAX_BODY_BYTES = 64 * 1024;

/**
 * Sends a webhook with these headers and no others but those of the connection, follows no redirect and reads past
 * responses of 1xx, as the service does: `fetch` adds headers of browsers and takes a 100 for the end.
 */
export async function postWebhook(
  url: string,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array,
  { signal, timeoutMs }: { signal: AbortSignal; timeoutMs: number },
): Promise<WebhookResponse> {
  const abort = linkedAbort(signal, timeoutMs);
  try {
    const response = await responseTo(url, headers, body, abort.signal);
    const { statusCode: status = 0, headers: given } = response;
    const isHtml = given['content-type']?.includes('html') === true;
    return { status, location: given.location ?? null, body: await startOf(response), isHtml };
  } catch (error) {
    throw abort.isLate() ? abort.signal.reason : error;
  } finally {
    abort.release();
  }
}

function responseTo(
  url: string,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const make = url.startsWith('https:') ? httpsRequest : httpRequest;
  const given = { ...headers, 'content-length': String(body.byteLength) };
  return new Promise((resolve, reject) => {
    const request = make(url, { method: 'POST', headers: given, signal });
    request.once('error', (error: NodeJS.ErrnoException) => {
      // A server that restarted has closed the connection that was kept.
      const isStale = request.reusedSocket && error.code === 'ECONNRESET';
      if (isStale) resolve(responseTo(url, headers, body, signal));
      else reject(error);
    });
    request.once('response', resolve).end(body);
  });
}

/** Everything is read, so that the other side can finish; the beginning is kept. */
async function startOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    if (sizeBytes < MAX_BODY_BYTES) chunks.push(chunk);
    sizeBytes += chunk.length;
  }
  return Buffer.concat(chunks).subarray(0, MAX_BODY_BYTES).toString('utf8');
}
