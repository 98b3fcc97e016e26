import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const DOCUMENTS = ['*.md', 'docs/**/*.md', 'clients/*/README.md'].flatMap((pattern) =>
  globSync(pattern, { cwd: ROOT }),
);

/** A document without its blocks of code, in which a bracket is no link. */
function prose(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8').replace(/^ *```[\s\S]*?^ *```$/gm, '');
}

/** The anchors that a renderer gives to headings. */
function anchorsOf(path: string): string[] {
  return [...prose(path).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}

const CODE = globSync('{src,test,dev,bench,scripts,deploy,clients,examples}/**/*.{ts,sql}', {
  cwd: ROOT,
  exclude: ['**/node_modules/**'],
});

/** Files of code that a document names with a folder, `src/engine/queue/claim.ts` or `queue/claim.ts`, and that are not there. */
function missingFiles(text: string): string[] {
  return [...text.matchAll(/`((?:[\w.-]+\/)+[\w.-]+\.(?:ts|sql))`/g)]
    .map(([, named = '']) => named)
    .filter((named) => !CODE.some((path) => path === named || path.endsWith(`/${named}`)));
}

/** The links of a document that lead nowhere in this repository. */
function brokenLinks(document: string): string[] {
  return [...prose(document).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !/^[a-z]+:/.test(link))
    .filter((link) => {
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? document : normalize(join(dirname(document), path));
      if (!existsSync(join(ROOT, target))) return true;
      return anchor !== undefined && !anchorsOf(target).includes(anchor);
    });
}

describe('documents', () => {
  test('are found', () => {
    expect(DOCUMENTS).toContain('README.md');
    expect(DOCUMENTS.length).toBeGreaterThan(50);
  });

  test.each(DOCUMENTS)('%s links only to files and headings that exist', (document) => {
    expect(brokenLinks(document)).toEqual([]);
  });

  test('name files of code where they are', () => {
    const named = [...DOCUMENTS, ...globSync('{src,test,dev,bench}/README.md', { cwd: ROOT })].filter(
      (path) => path !== 'CHANGELOG.md',
    );
    const missing = named.flatMap((path) => missingFiles(prose(path)).map((file) => `${path}: ${file}`));
    expect(missing).toEqual([]);
    expect(missingFiles('`src/engine/queue/claim.ts` `queue/claim.ts` `src/queue/claim.ts`')).toEqual([
      'src/queue/claim.ts',
    ]);
  });
});
