import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { fuzzedAccount } from './support/fuzzed-account.ts';
import { pythonEnvironment } from './support/python-environment.ts';
import { description } from './support/stack.ts';

const run = promisify(execFile);
const SETTINGS = fileURLToPath(new URL('support/schemathesis.toml', import.meta.url));
/**
 * What has time in npm test: requests that follow from the document alone. Those of sendMessage, with its many forms,
 * take longer than all others together. `npm run schemathesis` has everything, random requests and chains of requests too.
 */
const SHORT = ['--phases', 'examples,coverage', '--exclude-operation-id', 'sendMessage'];
const WHOLE = ['--phases', 'examples,coverage,fuzzing,stateful', '--max-examples', '15'];

test('schemathesis finds nothing that is not explained in schemathesis.toml', { timeout: 1_800_000 }, async ({
  skip,
}) => {
  const python = await pythonEnvironment('schemathesis');
  if (python === null) return skip();
  const { apiUrl } = description();
  const apiKey = await fuzzedAccount();
  const cwd = mkdtempSync(join(tmpdir(), 'heliograph-schemathesis-'));
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true }));
  const args = [
    ...['--config-file', SETTINGS, 'run', `${apiUrl}/api/external/openapi.json`, '--url', apiUrl],
    ...['--header', `Authorization: Bearer ${apiKey}`, '--no-color', '--checks', 'all', '--seed', '4'],
    // One thread: with two, its library's cache of sources now and then fails with a KeyError.
    ...['--workers', '1', '--warnings', 'off', ...(process.env.SCHEMATHESIS === 'whole' ? WHOLE : SHORT)],
  ];
  const { code, output } = await run(join(python.bin, 'st'), args, {
    cwd,
    maxBuffer: 256 * 1024 * 1024,
  }).then(
    ({ stdout }) => ({ code: 0, output: stdout }),
    ({ code: exitCode, stdout, stderr }) => ({ code: exitCode, output: `${stdout}${stderr}` }),
  );
  expect(code, output.slice(0, 20_000)).toBe(0);
  const [, count = '0'] = /(\d+) generated/.exec(output) ?? [];
  process.stdout.write(`schemathesis: ${count} requests without a finding\n`);
  expect(Number(count)).toBeGreaterThan(1_000);
});
