import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const TENANTS = fileURLToPath(new URL('../../docs/tenants', import.meta.url));

/** A block of code of the documents for tenants, with the name in the comment before it, if there is one. */
export type DocumentBlock = { document: string; language: string; marker: string | null; code: string };

/** All blocks of code in docs/tenants. */
export function documentBlocks(): DocumentBlock[] {
  return globSync('**/*.md', { cwd: TENANTS })
    .toSorted()
    .flatMap((document) => {
      const text = readFileSync(join(TENANTS, document), 'utf8');
      const found = text.matchAll(/(?:^<!-- (.+?) -->\n)?^```(\w*)\n([\s\S]*?)^```$/gm);
      return [...found].map(([, marker = null, language = '', code = '']) => ({
        document,
        language,
        marker,
        code,
      }));
    });
}

/** The blocks of a document that begin with a text. Throws when there is none. */
export function blocksThatBegin(document: string, beginning: string): string[] {
  const found = documentBlocks().filter(
    (block) => block.document === document && block.code.startsWith(beginning),
  );
  if (found.length === 0) throw new Error(`${document} has no block that begins with ${beginning}`);
  return found.map(({ code }) => code);
}

/** The one block of a document that begins with a text. */
export function blockThatBegins(document: string, beginning: string): string {
  const [block = '', ...others] = blocksThatBegin(document, beginning);
  if (others.length > 0) throw new Error(`${document} has several blocks that begin with ${beginning}`);
  return block;
}
