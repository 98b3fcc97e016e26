import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { newApiKey } from '../../../src/features/keys/api-key.ts';
import { stdioClient } from './mcp-clients.ts';

/** Whatever is at the URL that somebody gave. */
async function gateway(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function clientOf(url: string) {
  const key = newApiKey();
  const mcp = await stdioClient({ HELIOGRAPH_URL: url, HELIOGRAPH_API_KEY: key });
  onTestFinished(() => mcp.close());
  return { mcp, key };
}

test('the key is in no answer and no log, even when the other side sends it back', async () => {
  const url = await gateway(({ headers }, response) => {
    response.writeHead(400, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { code: 'echo', message: headers.authorization } }));
  });
  const { mcp, key } = await clientOf(url);
  const { isError, text } = await mcp.call('getOwnKey');
  expect([isError, JSON.parse(text).error.message]).toEqual([true, 'Bearer [API key]']);
  expect(JSON.stringify(await mcp.client.listTools()) + mcp.stderr()).not.toContain(key);
});

test('the key does not follow a redirect', async () => {
  const visits: string[] = [];
  const elsewhere = await gateway(({ url = '' }, response) => {
    visits.push(url);
    response.end();
  });
  const url = await gateway((_, response) => response.writeHead(307, { location: elsewhere }).end());
  const { mcp } = await clientOf(url);
  const { isError, text } = await mcp.call('getOwnKey');
  expect([isError, JSON.parse(text).error.code, visits]).toEqual([true, 'not_the_gateway', []]);
});

test('an answer without JSON, one that breaks off, and none at all have codes of their own', async () => {
  const url = await gateway((request, response) => {
    if (request.url === '/me') response.writeHead(200, { 'content-type': 'text/html' }).end('<html>');
    else if (request.url === '/api/external/usage') {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' }).write('{');
      response.destroy();
    } else request.socket.destroy();
  });
  const { mcp } = await clientOf(url);
  const codes = [];
  for (const name of ['getAccountIdentity', 'getUsage', 'getOwnKey']) {
    codes.push(JSON.parse((await mcp.call(name)).text).error.code);
  }
  expect(codes).toEqual(['not_the_gateway', 'gateway_unreachable', 'gateway_unreachable']);
});

test('Retry-After of a refusal is in the error', async () => {
  const url = await gateway((_, response) => {
    response.writeHead(429, { 'content-type': 'application/json', 'retry-after': '7' });
    response.end('{"error":{"code":"rate_limited","message":"Too many requests."}}');
  });
  const { mcp } = await clientOf(url);
  expect(JSON.parse((await mcp.call('getOwnKey')).text).error).toMatchObject({
    code: 'rate_limited',
    retryAfterSeconds: 7,
  });
});
