import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packClient } from './packed-client.ts';

const run = promisify(execFile);

/** Makes a folder a project that has the client as it is packed, and packages of other node_modules. */
export async function installClient(project: string, modules: Record<string, string[]>): Promise<void> {
  await packClient(project);
  const own = join(project, 'node_modules');
  mkdirSync(join(own, '@heliograph'), { recursive: true });
  await run('tar', ['-xzf', 'heliograph-client-0.1.0.tgz'], { cwd: project });
  await run('mv', ['package', join(own, '@heliograph', 'client')], { cwd: project });
  for (const [place, names] of Object.entries(modules)) {
    const wanted = names.length > 0 ? names : readdirSync(place).filter((name) => !name.startsWith('.'));
    for (const name of wanted) symlinkSync(join(place, name), join(own, name));
  }
}
