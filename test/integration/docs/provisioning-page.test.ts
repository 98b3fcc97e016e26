import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import type { PlatformScope } from '../../../src/features/keys/platform-key-store.ts';
import { startTestApi, testConfig } from '../api/api-harness.ts';
import { addPlatformKey, clientWith } from '../api/provisioning/platform-client.ts';

const PAGE = readFileSync(new URL('../../../docs/operators/provisioning.md', import.meta.url), 'utf8');

/** The blocks of the page that a reader runs, in their order. */
const BLOCKS = [...PAGE.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, code = '']) => code);

/** Runs a block as a reader does; each `curl` prints its status and its body in a line. */
async function runBlock(
  block: string,
  { directory, env }: { directory: string; env: Record<string, string> },
): Promise<[number, string][]> {
  const curl = `curl() { command curl --silent --show-error --write-out '\\n%{http_code}\\n' "$@"; }`;
  const { stdout } = await promisify(execFile)('bash', ['-euc', `${curl}\n${block}`], {
    cwd: directory,
    env: { PATH: process.env.PATH ?? '', ...env },
  });
  const lines = stdout.trim().split('\n');
  return lines.flatMap((line, at): [number, string][] =>
    /^\d{3}$/.test(line) ? [[Number(line), lines[at - 1] ?? '']] : [],
  );
}

test('the page is run from top to bottom, and every request does what it says', async () => {
  expect(BLOCKS).toHaveLength(7);
  const api = await startTestApi(async () => ({
    config: testConfig({
      HELIOGRAPH_PORTAL_PRODUCT_ORIGINS: 'https://crm.example',
      HELIOGRAPH_UPSTREAM_APP_ID: '700000000000001',
      HELIOGRAPH_UPSTREAM_SIGNUP_CONFIG_ID: '990000000000001',
    }),
  }));
  const [, scopes = ''] = /platform-key create .*--scopes (\S+)/.exec(PAGE) ?? [];
  const { platformKey, authorization } = await addPlatformKey(api.database, {
    scopes: scopes.split(',') as PlatformScope[],
  });
  const gateway = await api.app.listen({ host: '127.0.0.1', port: 0 });
  const env = { HELIOGRAPH_PLATFORM_KEY: platformKey, PLATFORM: `${gateway}/api/platform` };
  const [, wabaId = ''] = /wabas\/(\d+) /.exec(PAGE) ?? [];
  const directory = mkdtempSync(join(tmpdir(), 'heliograph-page-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const [, name = '', content = ''] = /`(\S+\.json)` is `(\{.*?\})`/.exec(PAGE) ?? [];
  writeFileSync(join(directory, name), content);
  const made: [number, string][] = [];
  for (const block of BLOCKS) {
    made.push(...(await runBlock(block.replace(/^PLATFORM=.*\n/, ''), { directory, env })));
  }
  expect(made.map(([status, body]) => [status, body.slice(0, 120)])).toEqual([
    [201, expect.stringContaining('acme')],
    [201, expect.stringContaining(wabaId)],
    [201, expect.stringContaining('ck_')],
    [201, expect.stringContaining('sl_')],
    [201, expect.stringContaining('ps_')],
    [200, expect.stringContaining('Acme Messaging')],
    [200, expect.stringContaining('asOf')],
    [200, expect.stringContaining('suspended')],
    [201, expect.anything()],
  ]);
  const ask = clientWith(api, authorization);
  const { body } = await ask('GET', '/operation-events?tenant=acme&types=key.created');
  const [, example = '{}'] = /^```json\n(\{"id": "opn_[\s\S]*?)^```$/m.exec(PAGE) ?? [];
  const shown = JSON.parse(example);
  expect(Object.keys(body.data[0])).toEqual(Object.keys(shown));
  expect(Object.keys(body.data[0].data).toSorted()).toEqual(Object.keys(shown.data).toSorted());
});
