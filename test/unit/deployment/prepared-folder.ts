import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';

/** A folder as an operator has it after `sh deploy/prepare.sh`, which printed `said`; removed after the tests of the file. */
export function prepareFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'compose-'));
  cpSync(fileURLToPath(new URL('../../../deploy', import.meta.url)), join(folder, 'deploy'), {
    recursive: true,
  });
  const prepare = () => execFileSync('sh', ['deploy/prepare.sh'], { cwd: folder, encoding: 'utf8' });
  afterAll(() => rmSync(folder, { recursive: true }));
  const fileOf = (path: string) => readFileSync(join(folder, path), 'utf8');
  return { folder, prepare, fileOf, said: prepare() };
}
