import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { stdioClient } from '../../integration/mcp/mcp-clients.ts';
import { listenInTest } from '../../support/listen.ts';
import { directory } from './run-cli.ts';

/** Programs of their own: another test may have taught this one already. */
const MAIN_SCRIPT = fileURLToPath(new URL('../../../clients/cli/src/main.ts', import.meta.url));
const run = promisify(execFile);

const KEY = `ck_${'ab'.repeat(32)}`;

/** A service behind a proxy that says 100 before each response, without having been asked. */
async function proxiedService(body: unknown): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeContinue();
    response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
  });
  const port = await listenInTest(server);
  return `http://127.0.0.1:${port}`;
}

const SENT = { state: 'accepted', serviceMessageId: '7', metaMessageId: 'wamid.1' };

test('a send through a proxy that says 100 unasked is reported as sent', async () => {
  const url = await proxiedService(SENT);
  const args = ['send', '--to', '+12025550143', '--text', 'Hi', '--from', '1', '--json'];
  const env = { HELIOGRAPH_URL: url, HELIOGRAPH_API_KEY: KEY, HELIOGRAPH_CONFIG_DIR: directory() };
  const { stdout, stderr } = await run(process.execPath, [MAIN_SCRIPT, ...args], { env });
  expect([stderr, JSON.parse(stdout)]).toEqual(['', SENT]);
});

test('a tool of an assistant gets the response behind it', async () => {
  const url = await proxiedService({ userId: 7, phoneNumbers: [] });
  const mcp = await stdioClient({ HELIOGRAPH_URL: url, HELIOGRAPH_API_KEY: KEY });
  onTestFinished(() => mcp.close());
  const { isError, text } = await mcp.call('getAccountIdentity');
  expect([isError, JSON.parse(text)]).toEqual([false, { userId: 7, phoneNumbers: [] }]);
});
