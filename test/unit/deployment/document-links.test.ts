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
});
