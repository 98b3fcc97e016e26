import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../../support/webhook-receiver.ts';
import { temporaryDirectory } from './temporary-directory.ts';

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));

const BUILDER = `
import { writeFileSync } from 'node:fs';
writeFileSync(new URL('../builder.txt', import.meta.url), String(process.pid));
setInterval(() => {}, 1_000);
`;

/** The script in a folder of its own, where a build never ends by itself. */
function project(): string {
  const root = temporaryDirectory();
  for (const folder of ['scripts', 'dev/embedded', 'src/platform/local-stack'])
    cpSync(join(ROOT, folder), join(root, folder), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  mkdirSync(join(root, 'site'));
  writeFileSync(join(root, 'package.json'), '{"type": "module"}');
  writeFileSync(join(root, 'scripts/docs-site.ts'), BUILDER);
  return root;
}

function isAlive(pid: number): boolean {
  try {
    // A process that ended stays as a zombie where nothing waits for it.
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

test.runIf(process.platform === 'linux')(
  'Ctrl-C ends the build of the documentation too, which goes on when the command that began it has ended',
  async () => {
    const root = project();
    // A group of its own, as a terminal gives each command: Ctrl-C is SIGINT for the whole group.
    const script = join(root, 'scripts/docs-beside-start.ts');
    const start = spawn(process.execPath, [script], { detached: true, stdio: 'ignore' });
    const group = start.pid;
    if (group === undefined) throw new Error('not started');
    const [code] = await once(start, 'exit');
    expect(code).toBe(0);
    const note = join(root, 'builder.txt');
    await eventually('it builds', () => existsSync(note) && readFileSync(note, 'utf8') !== '', 20_000);
    const builder = Number(readFileSync(note, 'utf8'));
    onTestFinished(() => void (isAlive(builder) && process.kill(builder, 'SIGKILL')));
    expect(isAlive(builder)).toBe(true);
    process.kill(-group, 'SIGINT');
    await eventually('it has ended', () => !isAlive(builder));
  },
  30_000,
);
