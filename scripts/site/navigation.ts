import { EVENT_TYPES } from '../../src/platform/event-type.ts';
import type { OpenApiDocument } from '../../test/support/openapi-document.ts';
import { operationGroups, PLATFORM_API, tagPath } from './api-pages.ts';
import { eventPath } from './event-pages.ts';
import { type Page, titleOf } from './markdown.ts';

export type Entry = { text: string; link?: string; collapsed?: boolean; items?: Entry[] };

/** The sections of docs/README.md: its tables are the order of the pages. */
const LINK = /\[([^\]]+)\]\(\.?\/?([^)#]+)\.md(?:#[^)]*)?\)/g;

/** The sidebar: the pages in the order of the first page, then the generated reference, then what nothing names. */
export function sidebarOf(pages: readonly Page[], document: OpenApiDocument): Entry[] {
  const index = pages.find(({ path }) => path === 'index.md')?.text ?? '';
  const [, ...sections] = index.split(/^## /m);
  const documents = sections.map((section) => {
    const [heading = ''] = section.split('\n', 1);
    const [text = heading] = heading.split(':', 1);
    const rows = [...section.matchAll(/^\| (.+?) \|/gm)].map(([, cell = '']) => cell);
    return { text, items: rows.flatMap((cell) => entriesOf(cell, pages)) };
  });
  const [first, ...others] = documents;
  return [...(first === undefined ? [] : [first]), ...referenceOf(document), ...others];
}

/** A cell with one page, or with several under a common name: "Quick start: [curl](…), [Python](…)". */
function entriesOf(cell: string, pages: readonly Page[]): Entry[] {
  const links = [...cell.matchAll(LINK)].map(([, text = '', path = '']) => ({
    text,
    link: linkOf(path),
  }));
  const [only] = links;
  if (only === undefined) return [];
  if (only.link.startsWith('/decisions/')) {
    return [{ text: only.text, collapsed: true, items: decisionsOf(pages) }];
  }
  if (links.length === 1) return [only];
  const [name = ''] = cell.split(':', 1);
  return [{ text: name, collapsed: false, items: links }];
}

function decisionsOf(pages: readonly Page[]): Entry[] {
  return pages
    .filter(({ path }) => path.startsWith('decisions/'))
    .map(({ path, text }) => ({ text: titleOf(text), link: linkOf(path.replace(/\.md$/, '')) }));
}

function referenceOf(document: OpenApiDocument): Entry[] {
  const tags = operationGroups(document).map(({ tag }) => ({
    text: tag.name,
    link: `/${tagPath(tag.name)}`,
  }));
  const types = EVENT_TYPES.map((type) => ({ text: type, link: `/${eventPath(type)}` }));
  return [
    {
      text: 'Reference',
      items: [
        { text: 'API', link: '/api/', collapsed: true, items: tags },
        { text: 'Platform API', link: `/${PLATFORM_API}/` },
        {
          text: 'Events',
          link: '/events/',
          collapsed: true,
          items: [...types, { text: 'upstream.*', link: '/events/upstream' }],
        },
        { text: 'Errors', link: '/errors' },
      ],
    },
  ];
}

function linkOf(path: string): string {
  return `/${path.replace(/(^|\/)index$/, '$1')}`;
}

/** The links of a sidebar in their order. */
export function linksOf(entries: readonly Entry[]): { text: string; link: string }[] {
  return entries.flatMap(({ text, link, items = [] }) => [
    ...(link === undefined ? [] : [{ text, link }]),
    ...linksOf(items),
  ]);
}
