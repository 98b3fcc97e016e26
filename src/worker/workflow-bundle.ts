import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode } from '@temporalio/worker';
import { type Logger, openLogger } from '../platform/logger.ts';

const SOURCE_FOLDER = fileURLToPath(new URL('..', import.meta.url));
const ENTRY = join(SOURCE_FOLDER, 'workflows', 'bundle-entry.ts');
const CACHE_FOLDER = fileURLToPath(new URL('../../node_modules/.cache/heliograph', import.meta.url));

export type WorkflowBundle = { codePath: string } | { code: string };

/**
 * The bundled workflow code. Bundling takes seconds, so the result is kept under a name that is a digest
 * of everything that goes into it; a process that finds it there starts at once.
 */
export async function loadWorkflowBundle(logger: Logger): Promise<WorkflowBundle> {
  const path = join(CACHE_FOLDER, `workflows-${await sourceDigest()}.js`);
  if (await exists(path)) return { codePath: path };
  logger.info('bundling workflow code');
  const { code } = await bundleWorkflowCode({
    workflowsPath: ENTRY,
    logger: {
      trace() {},
      debug() {},
      info() {},
      log() {},
      warn: (message) => logger.warn(message),
      error: (message) => logger.warn(message),
    },
  });
  const slim = slimBundle(code);
  return (await keep(path, slim)) ? { codePath: path } : { code: slim };
}

const MAP_COMMENT = '//# sourceMappingURL=data:application/json;charset=utf-8;base64,';

/**
 * The same code in a third of the memory, of which each worker holds it twice: without the sources in its source map,
 * which only tells their lines, and without characters for which a string takes two bytes each.
 */
export function slimBundle(code: string): string {
  const at = code.lastIndexOf(MAP_COMMENT);
  if (at < 0) return code;
  const json = Buffer.from(code.slice(at + MAP_COMMENT.length), 'base64').toString();
  const map: { sourcesContent?: unknown } = JSON.parse(json);
  delete map.sourcesContent;
  const escaped = code.slice(0, at).replace(/[^\0-\x7f]/g, escapeUnit);
  return `${escaped}${MAP_COMMENT}${Buffer.from(JSON.stringify(map)).toString('base64')}`;
}

/** Means the same in strings and expressions, which is where such characters stand. */
function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** False where the folder cannot be written to, as in a read-only image: the next start bundles again. */
async function keep(path: string, code: string): Promise<boolean> {
  const draft = `${path}.${process.pid}`;
  try {
    await mkdir(CACHE_FOLDER, { recursive: true });
    await writeFile(draft, code);
    await rename(draft, path);
    return true;
  } catch {
    return false;
  }
}

/** All that workflow code consists of lies in them, and nothing that costs a new bundle for no reason. */
export const BUNDLED_FOLDERS = ['workflows', 'platform/temporal'];

/** Those folders, this file, and the SDK's version. */
async function sourceDigest(): Promise<string> {
  const digest = createHash('sha256');
  for (const folder of BUNDLED_FOLDERS) {
    const entries = await readdir(join(SOURCE_FOLDER, folder), { recursive: true });
    const names = entries.filter((name) => name.endsWith('.ts')).sort();
    for (const name of names) digest.update(name).update(await readFile(join(SOURCE_FOLDER, folder, name)));
  }
  digest.update(await readFile(fileURLToPath(import.meta.url)));
  const sdk: { version: string } = createRequire(import.meta.url)('@temporalio/worker/package.json');
  return digest.update(sdk.version).digest('hex').slice(0, 16);
}

async function exists(path: string): Promise<boolean> {
  return await readFile(path).then(
    () => true,
    () => false,
  );
}

export async function bundleWorkflows(): Promise<void> {
  await loadWorkflowBundle(openLogger({ logLevel: 'info' }, 'bundle-workflows'));
}
