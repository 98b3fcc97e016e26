import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';

/**
 * `npm start` builds the documentation beside itself and is still at it when somebody runs `npm test`: what git ignores is
 * nobody's source, so the linter never reads it.
 */

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'heliograph-lint-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const GENERATED = [
  'site/.pages/page.js',
  'site/.vitepress/.temp/page.js',
  'site/.vitepress/cache/page.js',
  'site/dist/page.js',
  'site/dist.new/page.js',
  '.data/page.js',
  'clients/cli/dist/page.js',
];

function put(path: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), 'let a=1\n');
}

function lint(): { status: number | null; output: string } {
  const biome = join(ROOT, 'node_modules/.bin/biome');
  const { status, stdout, stderr } = spawnSync(biome, ['check', '.'], { cwd: folder, encoding: 'utf8' });
  return { status, output: `${stdout}${stderr}` };
}

test('generated files are not linted, sources are', () => {
  for (const file of ['biome.json', '.gitignore']) copyFileSync(join(ROOT, file), join(folder, file));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  execFileSync('git', ['init', '--quiet'], { cwd: folder });
  for (const path of GENERATED) put(path);
  put('src/good.ts');
  writeFileSync(join(folder, 'src/good.ts'), 'export const a = 1;\n');
  expect(lint()).toMatchObject({ status: 0 });
  put('src/bad.ts');
  const { status, output } = lint();
  expect(status).toBe(1);
  expect(output).toContain('src/bad.ts');
});
