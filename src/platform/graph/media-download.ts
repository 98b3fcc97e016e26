import { request } from 'undici';
import { asGraphError, firstOf, type GraphConnection, USER_AGENT } from './graph-connection.ts';
import { GraphError, graphErrorOf } from './graph-error.ts';
import { checkedMediaUrl, type MediaHostRules } from './media-host.ts';

/** A download under way. Reading `body` throws GraphError when the connection fails or stalls. */
export type MediaDownload = {
  body: AsyncIterable<Uint8Array>;
  contentType: string | null;
  /** Ends the download when the body is not going to be read to its end; harmless after that. */
  discard(): void;
};

/**
 * Starts to download media with the access token, which goes to allowed hosts only and over no redirect.
 * Throws MediaHostRefused and GraphError; when `signal` aborts, its reason.
 */
export async function downloadMedia(
  { agent }: GraphConnection,
  rules: MediaHostRules,
  address: string,
  token: string,
  signal?: AbortSignal,
): Promise<MediaDownload> {
  const url = checkedMediaUrl(address, rules);
  const response = await request(url, {
    dispatcher: agent,
    headers: { authorization: `Bearer ${token}`, 'user-agent': USER_AGENT, accept: '*/*' },
    ...(signal === undefined ? {} : { signal }),
  }).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw asGraphError(error);
  });
  const { statusCode, headers, body } = response;
  // An error of a body that nobody reads must not end the process.
  body.on('error', () => undefined);
  if (statusCode !== 200) {
    body.destroy();
    throw refusal(statusCode, firstOf(headers['retry-after']));
  }
  return {
    body: chunksOf(body, signal),
    contentType: firstOf(headers['content-type']) ?? null,
    discard: () => body.destroy(),
  };
}

function refusal(status: number, retryAfter: string | undefined): GraphError {
  if (status >= 300 && status < 400) {
    return new GraphError({
      httpStatus: status,
      code: null,
      subcode: null,
      message: 'The media address answered with a redirect, which is not followed.',
      transient: true,
    });
  }
  return graphErrorOf({ status, retryAfter, body: null });
}

async function* chunksOf(body: AsyncIterable<Uint8Array>, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    signal?.throwIfAborted();
    throw asGraphError(error);
  }
}
