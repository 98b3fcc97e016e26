import { request } from 'undici';
import type { Config } from '../config/config.ts';
import { USER_AGENT } from '../http/user-agent.ts';
import { asGraphError, firstOf, type GraphCall, type GraphConnection, readText } from './graph-connection.ts';

/** A call of a tenant to upstream's API that was found harmless. */
export type PassedCall = Pick<GraphCall, 'path' | 'token'> & {
  method: 'GET' | 'POST' | 'DELETE';
  /** As `v26.0`; undefined: that of the service. */
  version: string | undefined;
  query: URLSearchParams;
  /** A form is written again: none of its bytes is the tenant's but values. */
  body: { json: string } | { form: FormData } | null;
};

export type PassedAnswer = { status: number; retryAfter: string | undefined; text: string };

/** Templates with examples, and the JSON of flows. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** Passes a call on. Throws GraphError when there is no answer; redirects are answers. */
export async function passOn(
  { agent, upstream }: Pick<GraphConnection, 'agent'> & Pick<Config, 'upstream'>,
  { method, version, path, query, token, body }: PassedCall,
  timeoutMs: number,
): Promise<PassedAnswer> {
  const { graphUrl, graphVersion } = upstream;
  const segments = [version ?? graphVersion, ...path].map(encodeURIComponent);
  const url = new URL(`${graphUrl}/${segments.join('/')}`);
  url.search = query.toString();
  const headers = { authorization: `Bearer ${token}`, accept: 'application/json', 'user-agent': USER_AGENT };
  const content =
    body === null
      ? { headers }
      : 'json' in body
        ? { body: body.json, headers: { ...headers, 'content-type': 'application/json' } }
        : await encodedForm(body.form, headers);
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const answer = await request(url, { dispatcher: agent, method, signal, ...content });
    const text = await readText(answer, MAX_ANSWER_BYTES);
    return { status: answer.statusCode, retryAfter: firstOf(answer.headers['retry-after']), text };
  } catch (error) {
    throw asGraphError(error);
  }
}

async function encodedForm(form: FormData, headers: Record<string, string>) {
  const encoded = new Response(form);
  const contentType = encoded.headers.get('content-type') ?? '';
  const body = Buffer.from(await encoded.arrayBuffer());
  return { body, headers: { ...headers, 'content-type': contentType } };
}
