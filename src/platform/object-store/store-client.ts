import { AsyncLocalStorage } from 'node:async_hooks';
import type { ClientRequest, IncomingMessage } from 'node:http';
import http from 'node:http';
import https from 'node:https';
import { createRequire } from 'node:module';
import type { Client, ClientOptions } from 'minio';
import type { Config } from '../config/config.ts';

export const DEFAULT_TIMEOUTS = { answerTimeoutMs: 20_000, stallTimeoutMs: 30_000 };
const MAX_SOCKETS = 64;

export function openAgent({ url }: Config['objectStore']): http.Agent {
  const { Agent } = url.startsWith('https:') ? https : http;
  return new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS });
}

export function openClient(
  config: Config['objectStore'],
  agent: http.Agent,
  timeouts: { answerTimeoutMs: number; stallTimeoutMs: number },
): Client {
  const { Client: MinioClient } = loadLibrary();
  const url = new URL(config.url);
  const useSSL = url.protocol === 'https:';
  return new MinioClient({
    endPoint: url.hostname,
    port: url.port === '' ? (useSSL ? 443 : 80) : Number(url.port),
    useSSL,
    ...credentialsOf(config),
    region: config.region,
    transport: boundedTransport(timeouts),
    transportAgent: agent,
    // The caller decides about retries; the library's own are silent and delay it.
    retryOptions: { disableRetry: true },
  });
}

/**
 * The MinIO library in its CommonJS form. As an ES module it reads the CommonJS libraries under it twice and keeps both
 * texts, and its own source maps: some 4 MiB of memory per process.
 */
function loadLibrary(): typeof import('minio') {
  return createRequire(import.meta.url)('minio');
}

/**
 * The AWS environment is asked at the first request, and again before what it gave expires. By AWS's own library: the
 * MinIO library's reads other names than AWS's services answer with.
 */
function credentialsOf({ credentials, accessKey, secretKey, region }: Config['objectStore']): Credentials {
  if (credentials === 'keys') return { accessKey, secretKey };
  const { defaultProvider }: typeof import('@aws-sdk/credential-provider-node') = createRequire(
    import.meta.url,
  )('@aws-sdk/credential-provider-node');
  const provide = defaultProvider({ clientConfig: { region } });
  const getCredentials = async () => {
    const { accessKeyId, secretAccessKey, sessionToken } = await provide();
    return {
      getAccessKey: () => accessKeyId,
      getSecretKey: () => secretAccessKey,
      getSessionToken: () => sessionToken,
    };
  };
  return { credentialsProvider: { getCredentials } as unknown as CredentialProvider };
}

type CredentialProvider = NonNullable<ClientOptions['credentialsProvider']>;

type Credentials = Pick<ClientOptions, 'accessKey' | 'secretKey' | 'credentialsProvider'>;

/** What is asked for with every object; nothing: the bucket's own setting holds. */
export function encryptionHeaders({ encryption, kmsKeyId }: Config['objectStore']): Record<string, string> {
  if (encryption === 'default') return {};
  return {
    'X-Amz-Server-Side-Encryption': encryption,
    ...(kmsKeyId !== '' && { 'X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id': kmsKeyId }),
  };
}

type Transport = Pick<typeof http, 'request'>;

/** Ends the requests that are made within it: the client library passes no signal on. */
export const requestSignal = new AsyncLocalStorage<AbortSignal | undefined>();

/** Statuses at which the client library gives up without reading the body. */
const UNREAD_STATUSES = new Set([408, 429, 499, 500, 502, 503, 504, 520]);

/**
 * An http transport that never hangs: a request that gets no connection within `answerTimeoutMs` is destroyed, and so is
 * a connection that carries nothing for that time before the response, and a response whose body stalls for
 * `stallTimeoutMs` while its reader waits for more.
 */
function boundedTransport(timeouts: { answerTimeoutMs: number; stallTimeoutMs: number }): Transport {
  const request = (options: http.RequestOptions, onResponse?: (response: IncomingMessage) => void) => {
    const { request: start } = options.protocol === 'https:' ? https : http;
    const signal = requestSignal.getStore();
    const outgoing: ClientRequest = start(options, (response) => {
      outgoing.setTimeout(0);
      if (UNREAD_STATUSES.has(response.statusCode ?? 0)) response.resume();
      endWhenStalled(response, timeouts.stallTimeoutMs);
      onResponse?.(response);
    });
    // Who waits for it has listeners: an error that comes without a listener must not end the process.
    outgoing.on('error', () => undefined);
    outgoing.setTimeout(timeouts.answerTimeoutMs, () => {
      outgoing.destroy(new Error(`no answer within ${timeouts.answerTimeoutMs} ms`));
    });
    // Node's own time-out begins with the connection: it does not count the wait for one.
    const unconnected = setTimeout(() => {
      end(outgoing, new Error(`no connection within ${timeouts.answerTimeoutMs} ms`));
    }, timeouts.answerTimeoutMs);
    outgoing.once('socket', () => clearTimeout(unconnected)).once('close', () => clearTimeout(unconnected));
    if (signal !== undefined) endAtSignal(outgoing, signal);
    return outgoing;
  };
  return { request: request as Transport['request'] };
}

function endAtSignal(outgoing: ClientRequest, signal: AbortSignal): void {
  const abort = () => end(outgoing, new Error('nobody waits for the answer any more'));
  // The library listens for errors once it has the request.
  if (signal.aborted) return void process.nextTick(abort);
  signal.addEventListener('abort', abort, { once: true });
  outgoing.once('close', () => signal.removeEventListener('abort', abort));
}

/** Of a request that waits for a connection, Node would report the error only when it has one, which may be never. */
function end(outgoing: ClientRequest, error: Error): void {
  outgoing.destroy(error);
  if (outgoing.socket === null) outgoing.emit('error', error);
}

/** A socket timeout would also cut a body that our own slow reader holds back; this looks at who is waiting. */
function endWhenStalled(response: IncomingMessage, stallTimeoutMs: number): void {
  let seenBytes = -1;
  const timer = setInterval(() => {
    const bytesRead = response.socket?.bytesRead ?? seenBytes;
    const readerWaits = response.readableLength === 0;
    if (readerWaits && bytesRead === seenBytes) {
      response.destroy(new Error(`the answer stalled for ${stallTimeoutMs} ms`));
    }
    seenBytes = bytesRead;
  }, stallTimeoutMs);
  timer.unref();
  response.once('close', () => clearInterval(timer));
}
