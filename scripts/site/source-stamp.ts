import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A file of the built site that says of which sources it was made. */
export const STAMP_FILE = 'sources.txt';

const SOURCES = [
  '*.md',
  'docs/**/*.md',
  'clients/typescript/README.md',
  'clients/python/README.md',
  'clients/go/README.md',
  'scripts/docs-site.ts',
  'scripts/site/*.ts',
  'site/.vitepress/config.ts',
  'site/.vitepress/theme/*',
  'src/api/**/*.ts',
  'package-lock.json',
];

/** A hash of all that the site is made of. */
export function sourceStamp(root: string): string {
  const hash = createHash('sha256');
  const files = SOURCES.flatMap((pattern) => globSync(pattern, { cwd: root }));
  for (const file of files.toSorted()) hash.update(`${file}\0`).update(readFileSync(join(root, file)));
  return `${hash.digest('hex')}\n`;
}
