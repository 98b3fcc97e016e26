/**
 * `npm run pin-images` pins every image of a registry, base images too, to the digest that its tag has now; it needs Docker and the
 * registries. `--check` only says which are not pinned, and fails then: a release is made of pinned images.
 */
import { execFile } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { IMAGE_FILES, unpinnedIn, withDigests } from './image-pins.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const run = promisify(execFile);

async function digestOf(image: string): Promise<string> {
  const args = ['buildx', 'imagetools', 'inspect', image, '--format', '{{.Manifest.Digest}}'];
  return await run('docker', args).then(
    ({ stdout }) => stdout.trim(),
    (error) => {
      process.stderr.write(
        `The digest of ${image} is missing: this needs Docker with buildx, and the registry.\n`,
      );
      process.stderr.write(`${String(error.stderr || error.message).split('\n', 1)[0]}\n`);
      process.exit(1);
    },
  );
}

for (const path of globSync([...IMAGE_FILES], { cwd: ROOT }).toSorted()) {
  const text = readFileSync(`${ROOT}${path}`, 'utf8');
  if (process.argv[2] !== '--check') {
    writeFileSync(`${ROOT}${path}`, await withDigests(text, digestOf));
    continue;
  }
  const unpinned = unpinnedIn(text);
  if (unpinned.length === 0) continue;
  process.stderr.write(`${path} names images without a digest: ${unpinned.join(', ')}\n`);
  process.exitCode = 1;
}
