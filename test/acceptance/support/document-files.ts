import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const FILE = /<!-- file: (\S+) -->\n```\w*\n(.*?)\n```\n/gs;

/** Writes the programs of a document to a directory: each code block under the name in the comment before it. */
export function writeDocumentFiles(document: string, directory: string): string[] {
  const text = quickStart(document);
  const files = [...text.matchAll(FILE)].map(([, name = '', content = '']) => ({ name, content }));
  for (const { name, content } of files) {
    const path = join(directory, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${content}\n`);
  }
  return files.map(({ name }) => name);
}

/** The commands below `<!-- run: name -->` of a document. */
export function documentCommands(document: string, name: string): string {
  const [, commands] =
    new RegExp(`<!-- run: ${name} -->\\n\`\`\`sh\\n(.*?)\`\`\``, 's').exec(quickStart(document)) ?? [];
  if (commands === undefined) throw new Error(`${document} has no commands "${name}"`);
  return commands;
}

function quickStart(document: string): string {
  return readFileSync(new URL(`../../../docs/tenants/quick-start/${document}`, import.meta.url), 'utf8');
}
