import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { defineConfig, type MarkdownOptions } from 'vitepress';
import { headingAnchor } from '../../scripts/site/markdown.ts';
import type { Entry } from '../../scripts/site/navigation.ts';

type Navigation = { sidebar: Entry[] };

const PAGES = join(import.meta.dirname, '../.pages');
const { sidebar }: Navigation = JSON.parse(readFileSync(join(PAGES, 'navigation.json'), 'utf8'));

/** What the policy of the gateway forbids in a page stands in these files of the site instead. */
const moved = new Map<string, string>();
const codeStyles = new Map<string, string>();
const CODE_STYLES = 'assets/code.css';

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 10);
}

/** Colours of code as classes instead of style attributes. */
const stylesAsClasses = {
  name: 'styles-as-classes',
  span(node: { properties: Record<string, unknown> }) {
    const { style } = node.properties;
    if (typeof style !== 'string') return;
    const name = `c${hashOf(style)}`;
    codeStyles.set(name, style);
    delete node.properties.style;
    node.properties.class = name;
  },
};

type Renderer = Parameters<NonNullable<MarkdownOptions['config']>>[0]['renderer'];

/** Vue would evaluate what stands between double braces. Blocks of code, which it passes over, stay as they are. */
function bracesAsText(renderer: Renderer): void {
  for (const kind of ['text', 'code_inline'] as const) {
    const usual = renderer.rules[kind];
    if (usual === undefined) throw new Error(`markdown-it has no rule ${kind}`);
    renderer.rules[kind] = (...given) => usual(...given).replaceAll('{{', '&#123;&#123;');
  }
}

export default defineConfig({
  title: 'Heliograph',
  description: 'Ordered, signed, durable webhooks and a REST API in front of the WhatsApp Business Platform.',
  lang: 'en',
  srcDir: '.pages',
  cleanUrls: true,
  // Otherwise a change between light and dark adds a style element, which the policy forbids.
  appearance: { disableTransition: false },
  metaChunk: true,
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: 'BASE/icon.svg' }]],
  markdown: {
    anchor: { slugify: headingAnchor },
    languageAlias: { crontab: 'ini' },
    codeTransformers: [stylesAsClasses],
    config(md) {
      // Documents are shown as they read on GitHub: text in angle brackets is text.
      md.set({ html: false });
      md.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
      bracesAsText(md.renderer);
      for (const cell of ['th_open', 'td_open'] as const) {
        md.renderer.rules[cell] = (tokens, index, options, _env, self) => {
          const token = tokens[index];
          const [, side] = /text-align:(\w+)/.exec(String(token?.attrGet('style') ?? '')) ?? [];
          if (token !== undefined && side !== undefined) {
            token.attrs = (token.attrs ?? []).filter(([name]) => name !== 'style');
            token.attrJoin('class', `align-${side}`);
          }
          return self.renderToken(tokens, index, options);
        };
      }
    },
  },
  // The index of the search is one file.
  vite: { build: { chunkSizeWarningLimit: 2_000 } },
  themeConfig: {
    logo: '/icon.svg',
    sidebar,
    nav: [
      { text: 'Quick start', link: '/tenants/quick-start/' },
      { text: 'API', link: '/api/', activeMatch: '^/api/' },
      { text: 'Events', link: '/events/', activeMatch: '^/events/' },
      { text: 'Errors', link: '/errors' },
    ],
    outline: { level: [2, 3] },
    search: {
      provider: 'local',
      // Every word counts, and only long ones may be misspelled: "listen" is not "listed".
      options: { miniSearch: { searchOptions: { combineWith: 'AND', fuzzy: 0.07 } } },
    },
    docFooter: { prev: 'Previous', next: 'Next' },
  },
  transformHtml(html, _id, { siteConfig }) {
    const { base } = siteConfig.site;
    return (
      html
        .replaceAll('BASE/', base)
        // The style sheet has what matters of them.
        .replaceAll(/(<[a-z][^<>]*) style="[^"]*"/g, '$1')
        .replaceAll(
          /<script( type="module")?( id="[\w-]+")?>([\s\S]*?)<\/script>/g,
          (_whole, type = '', id = '', code) => {
            const file = `assets/inline.${hashOf(code)}.js`;
            moved.set(file, code);
            return `<script${type}${id} src="${base}${file}"></script>`;
          },
        )
        .replace('</head>', `<link rel="stylesheet" href="${base}${CODE_STYLES}"></head>`)
    );
  },
  buildEnd({ outDir }) {
    const rules = [...codeStyles].map(([name, style]) => `.${name}{${style}}`).toSorted();
    for (const [file, text] of [...moved, [CODE_STYLES, rules.join('\n')] as const]) {
      mkdirSync(dirname(join(outDir, file)), { recursive: true });
      writeFileSync(join(outDir, file), text);
    }
  },
});
