import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import {
  createMcpHandler,
  localhostAllowedHostnames,
  type McpHttpHandler,
  validateHostHeader,
  validateOriginHeader,
} from '@modelcontextprotocol/server';
import { isApiKey } from '../features/keys/api-key.ts';
import { readBody } from '../platform/http/read-body.ts';
import { unreadableBody, utf8Text } from '../platform/http/utf8-text.ts';
import { hasMoreValues, MAX_VALUES } from '../platform/json/json-values.ts';
import { makeKeyCheck } from './key-check.ts';
import { createMcpServer, type McpTools } from './mcp-server.ts';
import { makeRequestPlaces } from './request-places.ts';

export type HttpOptions = {
  host: string;
  port: number;
  /** Names by which callers may address this server, beside those of this machine. */
  allowedHosts: readonly string[];
  apiUrl: string;
  log(line: string): void;
};

const PATH = '/mcp';

/** As much as the API takes, and the frame around it. */
const MAX_BODY_BYTES = 512 * 1024;

/** Until head and body are here; the time of a tool comes after that. */
const RECEIVE_TIMEOUT_MS = 30_000;

/** Streamable HTTP. Each request carries the API key of its caller; this server has none. */
export async function serveHttp(
  tools: McpTools,
  options: HttpOptions,
): Promise<{ url: string; close(): Promise<void> }> {
  const { host, port, apiUrl, log } = options;
  const handler = createMcpHandler(
    ({ authInfo }) => createMcpServer(tools, { url: apiUrl, key: authInfo?.token ?? '' }),
    { maxRequestBodySize: MAX_BODY_BYTES, onerror: (error) => log(`a request failed: ${error.message}`) },
  );
  const hostnames = [...localhostAllowedHostnames(), ...options.allowedHosts];
  const gate: Gate = { hostnames, refusalOf: makeKeyCheck(apiUrl), places: makeRequestPlaces() };
  const server = createServer({ requestTimeout: RECEIVE_TIMEOUT_MS }, (request, response) => {
    answer(handler, gate, request, response).catch((error: unknown) => {
      if (request.destroyed && response.destroyed) return;
      log(`a request failed: ${error instanceof Error ? error.message : 'unknown error'}`);
      if (response.headersSent) response.destroy();
      else refuse(response, DEFECT);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host, resolve);
  });
  const { address, family, port: boundPort } = server.address() as AddressInfo;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${boundPort}${PATH}`,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      await handler.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

type Gate = {
  hostnames: string[];
  refusalOf: ReturnType<typeof makeKeyCheck>;
  places: ReturnType<typeof makeRequestPlaces>;
};

async function answer(
  handler: McpHttpHandler,
  { hostnames, refusalOf, places }: Gate,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const caller = callerOf(request, hostnames);
  const refusal = 'status' in caller ? caller : await refusalOf(caller.key);
  if (refusal !== null || 'status' in caller) return await refuseBody(request, response, refusal ?? DEFECT);
  const { key } = caller;
  if (!places.take(key)) return await refuseBody(request, response, TOO_MANY);
  try {
    await answerCaller(handler, key, request, response);
  } finally {
    places.leave(key);
  }
}

/** Reads and drops the body first, so that its sender gets to see why. */
async function refuseBody(
  request: IncomingMessage,
  response: ServerResponse,
  refusal: Refusal,
): Promise<void> {
  await readBody(request, 0);
  refuse(response, refusal);
}

async function answerCaller(
  handler: McpHttpHandler,
  key: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await readBody(request, MAX_BODY_BYTES);
  if (body === null) return refuse(response, TOO_LARGE);
  const unreadable = unreadableBody(request.headers);
  if (unreadable !== null) return refuse(response, { ...UNREADABLE, status: 415, message: unreadable });
  const text = utf8Text(body);
  if (text === null) return refuse(response, UNREADABLE);
  // One request could otherwise ask for the work of hundreds. The protocol has had none since 2025-06-18.
  if (/^\s*\[/.test(text)) return refuse(response, BATCH);
  if (hasMoreValues(text, MAX_VALUES)) return refuse(response, TOO_MANY_VALUES);
  const aborted = new AbortController();
  response.once('close', () => aborted.abort());
  const authInfo = { token: key, clientId: 'api-key', scopes: [] };
  const answered = await handler.fetch(webRequest(request, body, aborted.signal), { authInfo });
  response.writeHead(answered.status, Object.fromEntries(answered.headers));
  if (answered.body === null) response.end();
  else await pipeline(Readable.fromWeb(answered.body), response);
}

type Refusal = { status: number; code: string; message: string; headers?: Record<string, string> };

const DEFECT: Refusal = {
  status: 500,
  code: 'internal_error',
  message: 'Something went wrong; see the log of the MCP server.',
};

const UNREADABLE: Refusal = { status: 400, code: 'invalid_request', message: 'The body is not UTF-8.' };

const TOO_LARGE: Refusal = {
  status: 413,
  code: 'body_too_large',
  message: `A request has a body of up to ${MAX_BODY_BYTES} bytes.`,
};

const TOO_MANY_VALUES: Refusal = {
  status: 413,
  code: 'body_too_large',
  message: `A request body has up to ${MAX_VALUES} values.`,
};

const BATCH: Refusal = {
  status: 400,
  code: 'batch_not_supported',
  message: 'Send one message in a request, not a list.',
};

const TOO_MANY: Refusal = {
  status: 429,
  code: 'too_many_requests',
  message: 'Too many requests of this key are under way. Wait for one to end.',
  headers: { 'retry-after': '1' },
};

/** Whose key a request carries, or why it is refused before its body is looked at. */
function callerOf({ headers, url }: IncomingMessage, hostnames: string[]): { key: string } | Refusal {
  const { host, origin, authorization = '' } = headers;
  // A page in a browser could otherwise reach this server by a name that it lets point to this machine.
  for (const verdict of [validateHostHeader(host, hostnames), validateOriginHeader(origin, hostnames)]) {
    if (!verdict.ok) return { status: 403, code: 'host_not_allowed', message: verdict.message };
  }
  if (url?.split('?')[0] !== PATH) return { status: 404, code: 'not_found', message: `MCP is at ${PATH}.` };
  const key = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
  if (isApiKey(key)) return { key };
  return {
    status: 401,
    code: 'invalid_api_key',
    message: 'The request needs the header "Authorization: Bearer <API key>", with a key of the gateway.',
    headers: { 'www-authenticate': 'Bearer realm="heliograph"' },
  };
}

function webRequest(request: IncomingMessage, body: Buffer, signal: AbortSignal): Request {
  const { method = 'GET', headers } = request;
  const hasBody = method !== 'GET' && method !== 'HEAD';
  return new Request(`http://localhost${PATH}`, {
    method,
    headers: Object.entries(headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((each): [string, string] => [name, each]),
    ),
    signal,
    ...(hasBody && { body: new Uint8Array(body) }),
  });
}

function refuse(response: ServerResponse, { status, code, message, headers = {} }: Refusal): void {
  response.writeHead(status, { ...headers, 'content-type': 'application/json', connection: 'close' });
  response.end(JSON.stringify({ error: { code, message } }));
}
