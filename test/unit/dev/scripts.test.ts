import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const empty = mkdtempSync(join(tmpdir(), 'scripts-'));
afterAll(() => rmSync(empty, { recursive: true, force: true }));
symlinkSync(process.execPath, join(empty, 'node'));

/** A machine with Node.js and nothing else, behind a proxy that refuses. */
const NOTHING = {
  PATH: empty,
  HOME: empty,
  XDG_CACHE_HOME: empty,
  HTTP_PROXY: 'http://127.0.0.1:9',
  HTTPS_PROXY: 'http://127.0.0.1:9',
  GOPROXY: 'off',
};

function run(script: string, args: readonly string[]) {
  const child = spawnSync(process.execPath, [join(ROOT, 'scripts', script), ...args], {
    cwd: ROOT,
    env: NOTHING,
    encoding: 'utf8',
  });
  return { ...child, lines: child.stderr.trimEnd().split('\n') };
}

describe('a script says in a plain sentence what is missing:', () => {
  test.each([
    ['screenshots.ts', ['--data-dir', '/nowhere'], /^Nothing runs: .* is missing\. Run npm start first\.$/],
    ['screenshots.ts', ['circus'], /^There are pictures of "portal" and of "situations", not of "circus"\.$/],
    ['film.ts', ['--data-dir', '/nowhere'], /^Nothing runs: .* is missing\. Run npm start first\.$/],
    ['film-cli.ts', ['--data-dir', '/nowhere'], /^Nothing runs: .* is missing\. Run npm start first\.$/],
    ['test-room.ts', [], /^Name a room: npm run test:room ROOM…, such as deliveries\.$/],
    ['test-room.ts', ['circus'], /^There are no tests of circus: npm run test:room ROOM…/],
    ['release.ts', [], /^npm run release -- \[--check\|--notes\|--published\] <version>$/],
    [
      'pin-images.ts',
      [],
      /^The digest of \S+ is missing: this needs Docker with buildx, and the registry\.$/,
    ],
  ])('%s %j', (script, args, sentence) => {
    const { lines, status } = run(script, args);
    expect(lines[0]).toMatch(sentence);
    expect(lines.length).toBeLessThanOrEqual(2);
    expect(status).not.toBe(0);
  });

  test('provide-test-programs.ts, in a line for each thing, with the tests that need it', () => {
    const { stdout, stderr, status } = run('provide-test-programs.ts', []);
    expect([status, stderr]).toEqual([0, '']);
    const missing = stdout.split('\n').filter((line) => line.startsWith('Missing: '));
    expect(missing.map((line) => line.slice(9).split(', which ')[0])).toEqual(
      expect.arrayContaining(['Temporal and MinIO', 'the oldest Node.js']),
    );
    for (const line of missing) {
      expect(line).toMatch(/^Missing: .+, which .+ need; .+/);
      expect(line.length).toBeLessThan(300);
    }
    expect(stdout.match(/NOT TESTED for want of python3/g)).toHaveLength(1);
    expect(stdout).not.toMatch(/^\s+(?:at |- |go: )|WARNING/m);
  });
});
