import { Readable } from 'node:stream';
import { request } from 'undici';
import type { Config } from '../config/config.ts';
import { USER_AGENT } from '../http/user-agent.ts';
import { asGraphError, firstOf, type GraphCall, type GraphConnection, readText } from './graph-connection.ts';

/** A call of a tenant to upstream's API that was found harmless. */
export type PassedCall = Pick<GraphCall, 'path'> & {
  token: string;
  method: 'GET' | 'POST' | 'DELETE';
  /** As `v26.0`; undefined: that of the service. */
  version: string | undefined;
  query: URLSearchParams;
  /** A form is written again: none of its bytes is the tenant's but values. The bytes of a file go out as they come. */
  body: { json: string } | { form: FormData } | FilePart | null;
  /** For the whole call, in place of what calls may take. */
  timeoutMs?: number;
};

/** Exactly `sizeBytes` of a file, from `offset` on. */
type FilePart = { file: AsyncIterable<Uint8Array>; offset: number; sizeBytes: number };

export type PassedAnswer = { status: number; retryAfter: string | undefined; text: string };

/** Templates with examples, and the JSON of flows. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** Passes a call on. Throws GraphError when there is no answer; redirects are answers. */
export async function passOn(
  { agent, upstream }: Pick<GraphConnection, 'agent'> & Pick<Config, 'upstream'>,
  { method, version, path, query, token, body, ...call }: PassedCall,
  limitMs: number,
): Promise<PassedAnswer> {
  const timeoutMs = call.timeoutMs ?? limitMs;
  const { graphUrl, graphVersion } = upstream;
  const segments = [version ?? graphVersion, ...path].map(pathSegment);
  const url = new URL(`${graphUrl}/${segments.join('/')}`);
  url.search = query.toString();
  // As upstream's guide to resumable uploads has it.
  const scheme = path[0]?.startsWith('upload:') === true ? 'OAuth' : 'Bearer';
  const headers = {
    authorization: `${scheme} ${token}`,
    accept: 'application/json',
    'user-agent': USER_AGENT,
  };
  const content = body === null ? { headers } : await contentOf(body, headers);
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const limits = { signal, headersTimeout: timeoutMs };
    const answer = await request(url, { dispatcher: agent, method, ...limits, ...content });
    const text = await readText(answer, MAX_ANSWER_BYTES);
    return { status: answer.statusCode, retryAfter: firstOf(answer.headers['retry-after']), text };
  } catch (error) {
    throw asGraphError(error);
  }
}

/** Ids of upload sessions have a colon, which upstream writes as it is. */
function pathSegment(segment: string): string {
  return encodeURIComponent(segment).replaceAll('%3A', ':');
}

async function contentOf(body: NonNullable<PassedCall['body']>, headers: Record<string, string>) {
  if ('json' in body) {
    return { body: body.json, headers: { ...headers, 'content-type': 'application/json' } };
  }
  if ('file' in body) {
    const { file, offset, sizeBytes } = body;
    const more = { 'content-type': 'application/octet-stream', 'content-length': String(sizeBytes) };
    return {
      body: Readable.from(file, { objectMode: false }),
      headers: { ...headers, ...more, file_offset: String(offset) },
    };
  }
  const { form } = body;
  const encoded = new Response(form);
  const contentType = encoded.headers.get('content-type') ?? '';
  return {
    body: Buffer.from(await encoded.arrayBuffer()),
    headers: { ...headers, 'content-type': contentType },
  };
}
