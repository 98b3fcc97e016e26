import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packClient } from './packed-client.ts';

const run = promisify(execFile);

/** Makes a folder a project that has the client as it is packed, and packages of other node_modules. Returns the packed file. */
export async function installClient(project: string, modules: Record<string, string[]>): Promise<string> {
  await packClient(project);
  const own = join(project, 'node_modules');
  mkdirSync(join(own, '@heliograph'), { recursive: true });
  const archive = readdirSync(project).find((name) => name.endsWith('.tgz')) ?? '';
  await run('tar', ['-xzf', archive], { cwd: project });
  await run('mv', ['package', join(own, '@heliograph', 'client')], { cwd: project });
  for (const [place, names] of Object.entries(modules)) {
    const wanted = names.length > 0 ? names : readdirSync(place).filter((name) => !name.startsWith('.'));
    for (const name of wanted) symlinkSync(join(place, name), join(own, name));
  }
  return join(project, archive);
}
