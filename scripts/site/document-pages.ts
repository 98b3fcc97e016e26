import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { type Page, titleOf, withFrontmatter } from './markdown.ts';

/** Documents at the top of the repository that have a page too. */
const TOP_DOCUMENTS: Readonly<Record<string, string>> = {
  'README.md': 'about.md',
  'CONTRIBUTING.md': 'contributing.md',
  'SECURITY.md': 'security.md',
  'CHANGELOG.md': 'changelog.md',
  'CODE_OF_CONDUCT.md': 'code-of-conduct.md',
  'clients/typescript/README.md': 'clients/typescript.md',
  'clients/python/README.md': 'clients/python.md',
  'clients/go/README.md': 'clients/go.md',
};

const GLOSSARY = { document: 'docs/architecture.md', anchor: 'glossary', path: 'glossary.md' };

/** Where a document of the repository stands among the pages; null when it has none. */
function pagePath(document: string): string | null {
  const top = TOP_DOCUMENTS[document];
  if (top !== undefined) return top;
  if (!document.startsWith('docs/')) return null;
  const path = document.slice('docs/'.length);
  return path.endsWith('.md') ? path.replace(/(^|\/)README\.md$/, '$1index.md') : path;
}

/** The documents of the repository as pages. Links to what has no page lead to `sourceUrl`, or are plain text without it. */
export function documentPages(root: string, sourceUrl: string | null): Page[] {
  const documents = [...Object.keys(TOP_DOCUMENTS), ...globSync('docs/**/*.md', { cwd: root })].toSorted();
  const pages = documents.map((document) => {
    const path = pagePath(document);
    if (path === null) throw new Error(`${document} has no page`);
    const text = pageText(root, document, path, sourceUrl);
    // Decisions explain the past: they would come before the pages that explain the present.
    const isSearched = !document.startsWith('docs/decisions/') && path !== 'changelog.md';
    return { path, text: isSearched ? text : withFrontmatter({ search: false }, text) };
  });
  return [...pages, glossaryPage(pages)];
}

function pageText(root: string, document: string, path: string, sourceUrl: string | null): string {
  const text = readFileSync(join(root, document), 'utf8');
  if (titleOf(text) === '') throw new Error(`${document} has no title`);
  // Between blocks of code, which come out at the odd places.
  return text
    .split(/(^ *```[\s\S]*?^ *```$)/m)
    .map((part, index) =>
      index % 2 === 1 ? part : linked(withoutComments(part), { document, path, sourceUrl }),
    )
    .join('');
}

function withoutComments(text: string): string {
  return text.replaceAll(/<!--[\s\S]*?-->\n?/g, '');
}

type Place = { document: string; path: string; sourceUrl: string | null };

/** The text with links from page to page instead of from file to file. */
function linked(text: string, { document, path, sourceUrl }: Place): string {
  const changed = (label: string, target: string): string => {
    if (/^([a-z]+:|#)/.test(target)) return `[${label}](${target})`;
    const [file = '', anchor] = target.split('#');
    const source = normalize(join(dirname(document), file));
    // Pictures stand in the public folder, whose addresses begin with a slash.
    if (isPicture(source)) return `[${label}](/${pagePath(source)})`;
    const isGlossary = source === GLOSSARY.document && anchor === GLOSSARY.anchor;
    const page = source.endsWith('.md') ? pagePath(source) : null;
    if (isGlossary) return `[${label}](${relativeLink(path, GLOSSARY.path)})`;
    if (page !== null) {
      return `[${label}](${relativeLink(path, page)}${anchor === undefined ? '' : `#${anchor}`})`;
    }
    return sourceUrl === null ? label : `[${label}](${sourceUrl}/${source})`;
  };
  const inline = text.replaceAll(
    /\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)/g,
    (_whole, label: string, target: string) => changed(withPictures(label), target),
  );
  return inline.replaceAll(/^\[([^\]]+)\]: (\S+)$/gm, (whole, label: string, target: string) => {
    if (/^[a-z]+:/.test(target)) return whole;
    const [, link = ''] = /\]\((\S+)\)$/.exec(changed(label, target)) ?? [];
    return `[${label}]: ${link}`;
  });

  /** The label of a link can be a picture, with a path of its own. */
  function withPictures(label: string): string {
    return label.replace(
      /!\[([^\]]*)\]\(([^)\s]+)\)/g,
      (_whole, alt: string, target: string) => `!${changed(alt, target)}`,
    );
  }
}

function relativeLink(from: string, to: string): string {
  const link = relative(dirname(from), to);
  return link.startsWith('.') ? link : `./${link}`;
}

/** The glossary has a page of its own, so that readers of the other pages need not open the architecture. */
function glossaryPage(pages: readonly Page[]): Page {
  const whole = pages.find(({ path }) => path === pagePath(GLOSSARY.document))?.text ?? '';
  const [, section] = whole.split('\n## Glossary\n');
  if (section === undefined) throw new Error(`${GLOSSARY.document} has no glossary`);
  const [terms = ''] = section.split('\n## ', 1);
  return { path: GLOSSARY.path, text: `# Glossary\n\nThe terms of these pages.\n${terms}` };
}

function isPicture(source: string): boolean {
  return /^docs\/screenshots\/.+\.webp$/.test(source);
}
