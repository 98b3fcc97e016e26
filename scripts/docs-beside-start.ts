import { spawn } from 'node:child_process';
import { openSync, readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isBuilding } from './site/one-build.ts';
import { STAMP_FILE, sourceStamp } from './site/source-stamp.ts';

/**
 * Runs before `npm start`: builds the documentation where it is missing or older than its sources. The build takes ten
 * seconds of a processor, so nobody waits for it; until it is done, /docs leads to the list of errors.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SITE = join(ROOT, 'site');
const LOW_PRIORITY = 10;

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function buildBeside(): void {
  if (isBuilding(SITE)) return;
  const log = openSync(join(SITE, 'build.log'), 'w');
  const script = join(ROOT, 'scripts/docs-site.ts');
  // In the group of the terminal: Ctrl-C ends it with everything else.
  const child = spawn(process.execPath, [script], { cwd: ROOT, stdio: ['ignore', log, log] });
  if (child.pid === undefined) return;
  setPriority(child.pid, LOW_PRIORITY);
  child.unref();
  process.stdout.write('The documentation is being built for /docs (site/build.log).\n');
}

if (readText(join(SITE, 'dist', STAMP_FILE)) !== sourceStamp(ROOT)) buildBeside();
