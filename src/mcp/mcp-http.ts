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
import { isApiKey } from '../keys/api-key.ts';
import { createMcpServer, type McpTools } from './mcp-server.ts';

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
  const server = createServer((request, response) => {
    answer(handler, hostnames, request, response).catch((error: unknown) => {
      if (request.destroyed && response.destroyed) return;
      log(`a request failed: ${error instanceof Error ? error.message : 'unknown error'}`);
      if (response.headersSent) response.destroy();
      else refuse(response, 500, 'internal_error', 'Something went wrong; see the log of the MCP server.');
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

async function answer(
  handler: McpHttpHandler,
  hostnames: string[],
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { host, origin, authorization = '' } = request.headers;
  // A page in a browser could otherwise reach this server by a name that it lets point to this machine.
  for (const verdict of [validateHostHeader(host, hostnames), validateOriginHeader(origin, hostnames)]) {
    if (!verdict.ok) return refuse(response, 403, 'host_not_allowed', verdict.message);
  }
  if (request.url?.split('?')[0] !== PATH) return refuse(response, 404, 'not_found', `MCP is at ${PATH}.`);
  const key = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
  if (!isApiKey(key)) {
    response.setHeader('www-authenticate', 'Bearer realm="heliograph"');
    const message =
      'The request needs the header "Authorization: Bearer <API key>", with a key of the gateway.';
    return refuse(response, 401, 'invalid_api_key', message);
  }
  const aborted = new AbortController();
  response.once('close', () => aborted.abort());
  const authInfo = { token: key, clientId: 'api-key', scopes: [] };
  const answered = await handler.fetch(webRequest(request, aborted.signal), { authInfo });
  response.writeHead(answered.status, Object.fromEntries(answered.headers));
  if (answered.body === null) response.end();
  else await pipeline(Readable.fromWeb(answered.body), response);
}

function webRequest(request: IncomingMessage, signal: AbortSignal): Request {
  const { method = 'GET', headers } = request;
  const hasBody = method !== 'GET' && method !== 'HEAD';
  return new Request(`http://localhost${PATH}`, {
    method,
    headers: Object.entries(headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((each): [string, string] => [name, each]),
    ),
    signal,
    ...(hasBody && { body: Readable.toWeb(request), duplex: 'half' as const }),
  });
}

function refuse(response: ServerResponse, status: number, code: string, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close' });
  response.end(JSON.stringify({ error: { code, message } }));
}
