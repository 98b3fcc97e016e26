// For `node --import`: hands Node.js the sources with their types already removed. By itself it removes them at every
// start, with a compiler of 28 MiB that stays in memory. Lines and columns stay what they are.
// Run by itself, it does so for all sources: an image is read-only later.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SOURCE_URLS = ['src/', 'dev/'].map((folder) => new URL(`../${folder}`, import.meta.url));
const CACHE_FOLDER = fileURLToPath(new URL('../node_modules/.cache/heliograph/sources', import.meta.url));

/** The source without types: from the cache, unless the file has changed. */
function strippedSource(path) {
  const source = readFileSync(path, 'utf8');
  const cachePath = join(CACHE_FOLDER, `${relative(ROOT, path)}.js`);
  const mark = `\n//${createHash('sha256').update(process.version).update(source).digest('hex')}`;
  const cached = readOrNull(cachePath);
  if (cached?.endsWith(mark)) return cached;
  const stripped = strip(source) + mark;
  keep(cachePath, stripped);
  return stripped;
}

/** Only this way to ask for it is experimental; it is what happens to every .ts file that Node.js runs. */
function strip(source) {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return stripTypeScriptTypes(source);
  } finally {
    process.emitWarning = emitWarning;
  }
}

function readOrNull(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

/** Several processes start at once; where nothing can be written, each start strips again. */
function keep(path, text) {
  const draft = `${path}.${process.pid}`;
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(draft, text);
    renameSync(draft, path);
  } catch {}
}

registerHooks({
  load(url, context, nextLoad) {
    const isOurs = url.endsWith('.ts') && SOURCE_URLS.some(({ href }) => url.startsWith(href));
    if (!isOurs) return nextLoad(url, context);
    return { format: 'module', source: strippedSource(fileURLToPath(url)), shortCircuit: true };
  },
});

if (import.meta.main) {
  // An image has no dev.
  for (const folder of SOURCE_URLS.map((url) => fileURLToPath(url)).filter((each) => existsSync(each)))
    for (const name of readdirSync(folder, { recursive: true }))
      if (name.endsWith('.ts')) strippedSource(join(folder, name));
}
