import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A folder with npm packages at fixed versions, made once per user and kept in the cache directory; none is ours to ship. */
export async function npmPackages(name: string, packages: readonly string[]): Promise<string> {
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'heliograph', 'npm');
  const place = join(cache, `${name}-${packages.join('-').replaceAll(/[^\w.-]/g, '_')}`);
  const done = join(place, 'installed');
  if (existsSync(done)) return place;
  await rm(place, { recursive: true, force: true });
  await mkdir(place, { recursive: true });
  await writeFile(join(place, 'package.json'), '{"private":true,"type":"module"}');
  const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--save-exact'];
  await run('npm', ['install', ...options, ...packages], { cwd: place });
  await writeFile(done, '');
  return place;
}
