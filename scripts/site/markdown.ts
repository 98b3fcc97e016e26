/** A page of the site: `path` within the folder of pages, such as `tenants/api.md`. */
export type Page = { path: string; text: string };

/** The anchor that GitHub gives to a heading; the site gives the same, so that links work in both. */
export function headingAnchor(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}

/** The title of a page: the text of its first heading, without formatting. */
export function titleOf(text: string): string {
  const [, title = ''] = /^# (.+)$/m.exec(text) ?? [];
  return title.replaceAll('`', '').trim();
}

/** A table, or nothing without rows. */
export function table(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '';
  const line = (cells: readonly string[]) => `| ${cells.map(cellText).join(' | ')} |`;
  return [line(columns), `|${columns.map(() => '---|').join('')}`, ...rows.map(line)].join('\n');
}

function cellText(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, ' ').replaceAll('|', '\\|');
}

/** A block of code. */
export function codeBlock(language: string, code: string): string {
  return `\`\`\`${language}\n${code}\n\`\`\``;
}

/** A value as a block of JSON. */
export function jsonBlock(value: unknown): string {
  return codeBlock('json', JSON.stringify(value, null, 2));
}

/** Parts of a page with an empty line between them; empty ones are left out. */
export function paragraphs(parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join('\n\n');
}

/** A part that readers unfold. */
export function details(title: string, content: string): string {
  return content === '' ? '' : `::: details ${title}\n${content}\n:::`;
}

/** A page with a frontmatter. */
export function withFrontmatter(values: Readonly<Record<string, unknown>>, text: string): string {
  const lines = Object.entries(values).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return `---\n${lines.join('\n')}\n---\n\n${text}`;
}
