import type { Readable } from 'node:stream';
import { Agent, errors, request } from 'undici';
import { decodedBody } from '../http/decoded-body.ts';
import { readPastContinue } from '../http/interim-responses.ts';
import { USER_AGENT } from '../http/user-agent.ts';
import { GraphError, graphErrorOf, noAnswer } from './graph-error.ts';

const CONNECT_TIMEOUT_MS = 5_000;
const ANSWER_TIMEOUT_MS = 10_000;
const CONNECTIONS = 64;
/** Longest pause inside a body. */
const STALL_TIMEOUT_MS = 30_000;
const CALL_TIMEOUT_MS = 15_000;
const MAX_ANSWER_BYTES = 1024 * 1024;

export type GraphConnection = { baseUrl: string; agent: Agent };

/** Opens connections to `graphUrl`, e.g. `https://graph.facebook.com`, at `graphVersion`, e.g. `v26.0`. */
export function openGraphConnection(
  options: { graphUrl: string; graphVersion: string },
  limits: { connections: number; answerTimeoutMs: number } = {
    connections: CONNECTIONS,
    answerTimeoutMs: ANSWER_TIMEOUT_MS,
  },
): GraphConnection {
  readPastContinue();
  const agent = new Agent({
    connect: { timeout: CONNECT_TIMEOUT_MS },
    headersTimeout: limits.answerTimeoutMs,
    bodyTimeout: STALL_TIMEOUT_MS,
    connections: limits.connections,
    pipelining: 1,
  });
  return { baseUrl: `${options.graphUrl}/${options.graphVersion}`, agent };
}

export type GraphCall = {
  /** Segments of the path; each is encoded. */
  path: readonly string[];
  query?: Readonly<Record<string, string>>;
  /** Null: the call needs none. */
  token: string | null;
  signal?: AbortSignal | undefined;
  /** For the whole call; 15 s by default. */
  timeoutMs?: number;
  /** Of the answer; 1 MiB by default. */
  maxAnswerBytes?: number;
};

/** Gets a JSON object. Throws GraphError; when `signal` aborts, its reason. */
export async function graphGet(
  connection: GraphConnection,
  call: GraphCall,
): Promise<Record<string, unknown>> {
  return await graphCall(connection, call, null);
}

/** Posts a JSON object and returns the one that it is answered with. Never repeats. Throws as `graphGet` does. */
export async function graphPost(
  connection: GraphConnection,
  call: GraphCall & { body: Readonly<Record<string, unknown>> },
): Promise<Record<string, unknown>> {
  return await graphCall(connection, call, JSON.stringify(call.body));
}

async function graphCall(
  connection: GraphConnection,
  call: GraphCall,
  bodyJson: string | null,
): Promise<Record<string, unknown>> {
  const url = graphUrl(connection, call.path);
  for (const [name, value] of Object.entries(call.query ?? {})) url.searchParams.set(name, value);
  const timeout = AbortSignal.timeout(call.timeoutMs ?? CALL_TIMEOUT_MS);
  const signal = call.signal === undefined ? timeout : AbortSignal.any([call.signal, timeout]);
  try {
    return await exchange(connection, url, { ...call, signal }, bodyJson);
  } catch (error) {
    call.signal?.throwIfAborted();
    throw asGraphError(error);
  }
}

/** The address of a path below the version; its segments are encoded. Throws GraphError for what is no id. */
export function graphUrl(connection: GraphConnection, path: readonly string[]): URL {
  return new URL(`${connection.baseUrl}/${path.map(pathSegment).join('/')}`);
}

/** An id as one segment of a path. What would change the path is no id: upstream would say that there is none such. */
function pathSegment(id: string): string {
  if (!/^\.{0,2}$/.test(id)) return encodeURIComponent(id.toWellFormed());
  throw noSuchObject();
}

export function noSuchObject(): GraphError {
  const message = 'The upstream platform has no object with such an id.';
  return new GraphError({ httpStatus: null, code: 100, subcode: 33, message, transient: false });
}

async function exchange(
  { agent }: GraphConnection,
  url: URL,
  { token, signal, maxAnswerBytes }: GraphCall & { signal: AbortSignal },
  bodyJson: string | null,
): Promise<Record<string, unknown>> {
  const headers = {
    ...(token !== null && { authorization: `Bearer ${token}` }),
    accept: 'application/json',
    'user-agent': USER_AGENT,
  };
  const answer = await request(url, {
    dispatcher: agent,
    signal,
    ...(bodyJson === null
      ? { headers }
      : { method: 'POST', body: bodyJson, headers: { ...headers, 'content-type': 'application/json' } }),
  });
  return objectOf(answer, await readText(answer, maxAnswerBytes));
}

/** The JSON object of a successful answer. Throws GraphError for every other. */
export function objectOf(
  { statusCode, headers }: { statusCode: number; headers: Record<string, string | string[] | undefined> },
  text: string,
): Record<string, unknown> {
  const json = parseObject(text);
  if (statusCode < 200 || statusCode > 299) {
    throw graphErrorOf({ status: statusCode, retryAfter: firstOf(headers['retry-after']), body: json });
  }
  if (json === null) throw noAnswer('its answer is not a JSON object');
  return json;
}

type Answer = { headers: Record<string, string | string[] | undefined>; body: Readable };

/** Reads the body of an answer up to `maxBytes`; a longer one is destroyed. */
export async function readText(
  { headers, body }: Answer,
  maxBytes: number = MAX_ANSWER_BYTES,
): Promise<string> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of contentOf({ headers, body })) {
    sizeBytes += chunk.length;
    if (sizeBytes > maxBytes) throw noAnswer(`its answer is longer than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The bytes of an answer as they were before they were compressed. Throws GraphError. */
export function contentOf({ headers, body }: Answer): Readable {
  const content = decodedBody(body, headers['content-encoding']);
  if (content !== null) return content;
  body.on('error', () => undefined).destroy();
  throw noAnswer('its answer has a Content-Encoding that nobody asked for');
}

export function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** Network failures and time-outs as GraphError; the reason is a code, which holds no address. */
export function asGraphError(error: unknown): GraphError {
  if (error instanceof GraphError) return error;
  return noAnswer(networkReason(error), error);
}

export function networkReason(error: unknown): string {
  if (error instanceof errors.ConnectTimeoutError) return 'the connection was not made in time';
  if (error instanceof errors.HeadersTimeoutError) return 'no answer in time';
  if (error instanceof errors.BodyTimeoutError) return `its answer stalled for ${STALL_TIMEOUT_MS} ms`;
  if (error instanceof Error && error.name === 'TimeoutError') return 'the time for the call ran out';
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return 'the connection failed';
}

export function firstOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

/** An address that the access token is not sent to. `host` is safe to show; the rest of the address is not. */
export class MediaHostRefused extends Error {
  readonly host: string;

  constructor(host: string, reason: string) {
    super(`The access token is not sent to ${host === '' ? 'this address' : host}: ${reason}.`);
    this.name = 'MediaHostRefused';
    this.host = host;
  }
}

export type MediaHostRules = {
  /** Host names, each with its subdomains, and IP addresses. */
  mediaHosts: readonly string[];
  /** In development mode only: plain http and any port, and files at the host of calls, as the sandbox has them. */
  allowHttp: boolean;
  /** Where calls go: they answer with more than files. */
  graphUrl: string;
};

const IP_LITERAL = /^[\d.]+$|^\[/;

/** The URL when the access token may be sent there: the sender of a webhook chooses it. Throws MediaHostRefused. */
export function checkedMediaUrl(address: string, rules: MediaHostRules): URL {
  const { mediaHosts, allowHttp } = rules;
  const url = URL.parse(address);
  if (url === null) throw new MediaHostRefused('', 'it is not a URL');
  const isPlainHttp = url.protocol === 'http:' && allowHttp;
  if (url.protocol !== 'https:' && !isPlainHttp) throw new MediaHostRefused(url.hostname, 'it is not https');
  if (url.username !== '' || url.password !== '')
    throw new MediaHostRefused(url.hostname, 'it holds a user name');
  if (url.port !== '' && !allowHttp) throw new MediaHostRefused(url.hostname, 'it names a port');
  if (isGraph(url, rules))
    throw new MediaHostRefused(url.hostname, 'calls go there, and media does not come from there');
  if (!mediaHosts.some((allowed) => isHostWithin(url.hostname, allowed))) {
    throw new MediaHostRefused(
      url.hostname,
      'the setting HELIOGRAPH_UPSTREAM_MEDIA_HOSTS does not name its host',
    );
  }
  return url;
}

const GRAPH_HOST = /^graph(?:-[a-z]+)?\./;
const VERSIONED_PATH = /^\/+v\d/i;

function isGraph(url: URL, { graphUrl, allowHttp }: MediaHostRules): boolean {
  if (GRAPH_HOST.test(url.hostname)) return true;
  const isSameHost = url.hostname === new URL(graphUrl).hostname;
  return isSameHost && (!allowHttp || VERSIONED_PATH.test(url.pathname));
}

function isHostWithin(host: string, allowed: string): boolean {
  const name = allowed
    .trim()
    .toLowerCase()
    .replace(/^\.+/, '')
    .replace(/(?<!\.)\.+$/, '');
  const own = host.replace(/\.$/, '');
  if (name === '') return false;
  return own === name || (!IP_LITERAL.test(own) && own.endsWith(`.${name}`));
}
