import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { npmPackages } from '../../acceptance/support/npm-packages.ts';
import { addKey, startTestApi, WABA } from '../api/api-harness.ts';
import { listen } from './mcp-clients.ts';

const run = promisify(execFile);
const MAIN_SCRIPT = fileURLToPath(new URL('../../../clients/cli/src/main.ts', import.meta.url));

test('the inspector of the protocol lists the tools and calls them', async () => {
  const folder = await npmPackages('mcp-inspector', ['@modelcontextprotocol/inspector@2.12.0']);
  const inspector = join(folder, 'node_modules/.bin/mcp-inspector');
  const api = await startTestApi();
  const { key } = await addKey(api.database);
  const environment = [`HELIOGRAPH_URL=${await listen(api.app)}`, `HELIOGRAPH_API_KEY=${key}`];
  const inspect = async (...args: string[]) => {
    const given = environment.flatMap((each) => ['-e', each]);
    const server = [process.execPath, MAIN_SCRIPT, 'mcp'];
    const all = [inspector, '--cli', ...given, ...server, ...args];
    return JSON.parse((await run(process.execPath, all, { maxBuffer: 8 * 1024 * 1024 })).stdout);
  };
  const { tools } = await inspect('--method', 'tools/list');
  expect(tools.map(({ name }: { name: string }) => name)).toContain('listEvents');
  const called = await inspect('--method', 'tools/call', '--tool-name', 'getAccountIdentity');
  expect(called).toMatchObject({ isError: false, content: [{ text: expect.stringContaining(WABA) }] });
});
