import type { Page } from './markdown.ts';
import type { Entry } from './navigation.ts';
import { linksOf } from './navigation.ts';

const SUMMARY =
  'Heliograph is a self-hosted gateway between the WhatsApp Business Platform and your own server: ordered, signed, durable webhooks and a REST API. Each link leads to a page as Markdown.';

/** llms.txt (llmstxt.org): every page with its address, in the order of the sidebar. */
export function llmsText(sidebar: readonly Entry[], pages: readonly Page[], base: string): string {
  const sections = sidebar.map(({ text, items = [] }) => {
    const lines = linksOf(items)
      .filter(({ link }) => !link.startsWith('/decisions/'))
      .map(({ link, text: name }) => {
        const page = pageAt(pages, link);
        return `- [${name}](${base}${page.path}): ${summaryOf(pages, page)}`;
      });
    return `## ${text}\n\n${lines.join('\n')}`;
  });
  return `# Heliograph\n\n> ${SUMMARY}\n\n${sections.join('\n\n')}\n`;
}

/** llms-full.txt: the pages for tenant developers and the reference, one after the other. */
export function llmsFullText(sidebar: readonly Entry[], pages: readonly Page[], base: string): string {
  const links = linksOf(sidebar.slice(0, 2));
  const paths = [...new Set(links.map(({ link }) => pageAt(pages, link).path))];
  const texts = pages
    .filter(({ path }) => paths.includes(path))
    .toSorted((one, other) => paths.indexOf(one.path) - paths.indexOf(other.path));
  return `${texts.map(({ path, text }) => `<!-- ${base}${path} -->\n\n${withoutFrontmatter(text).trim()}`).join('\n\n')}\n`;
}

/** The page that a link of the sidebar leads to. */
function pageAt(pages: readonly Page[], link: string): Page {
  const path = `${link.slice(1)}${link.endsWith('/') ? 'index' : ''}.md`;
  const page = pages.find((one) => one.path === path);
  if (page === undefined) throw new Error(`the sidebar names ${link}, which is no page`);
  return page;
}

/** What the first page says that a page is for; else its first sentence. */
function summaryOf(pages: readonly Page[], { path, text }: Page): string {
  const index = pages.find((page) => page.path === 'index.md')?.text ?? '';
  const row = index.split('\n').find((line) => line.startsWith('| ') && line.includes(`(./${path})`));
  const [, cell = '', purpose] = row?.split(/(?<!\\) ?\| ?/) ?? [];
  // A row with several pages says what they are for together.
  const isAlone = cell.split('](').length === 2;
  if (purpose !== undefined && isAlone) return purpose;
  const [, paragraph = ''] = /^# .+\n\n((?:.+\n?)+)/m.exec(text) ?? [];
  const [sentence = ''] = paragraph.replaceAll(/\s+/g, ' ').split(/(?<=[.:]) /, 1);
  return sentence.trim();
}

/** The Markdown of a page alone. */
export function withoutFrontmatter(text: string): string {
  return text.replace(/^---\n[\s\S]*?\n---\n+/, '');
}
