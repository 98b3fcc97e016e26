import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A page without text is this short: its frame has a heading and a paragraph at least. */
const MIN_CHARACTERS = 20;

/** The pages that the built site does not have, or has without a text: what failed to render leaves its frame only. */
export function emptyPages(directory: string, paths: readonly string[]): string[] {
  return paths.filter((path) => {
    const file = join(directory, path.replace(/\.md$/, '.html'));
    if (!existsSync(file)) return true;
    const html = readFileSync(file, 'utf8');
    // The first page has another frame.
    const [, content = ''] = /<(?:main|div) class="(?:main|VPHome)"[^>]*>([\s\S]*)/.exec(html) ?? [];
    const [shown = ''] = content.split('</main>', 1);
    return shown.replaceAll(/<[^>]*>|\s/g, '').length < MIN_CHARACTERS;
  });
}
