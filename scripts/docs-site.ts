import { cpSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'vitepress';
import { apiPages, platformApiPage } from './site/api-pages.ts';
import { brokenLinks } from './site/check-links.ts';
import { documentPages } from './site/document-pages.ts';
import { emptyPages } from './site/empty-pages.ts';
import { errorPage } from './site/error-page.ts';
import { eventPages } from './site/event-pages.ts';
import { homePage } from './site/home-page.ts';
import { llmsFullText, llmsText, withoutFrontmatter } from './site/llms-text.ts';
import { sidebarOf } from './site/navigation.ts';
import { becomeBuilder } from './site/one-build.ts';
import { openApiDocument } from './site/openapi-document.ts';
import { STAMP_FILE, sourceStamp } from './site/source-stamp.ts';

/**
 * Builds the site of docs/, the API reference, the event catalogue and the errors into site/dist, which the gateway serves at
 * /docs: `npm run docs -- [--base /docs/] [--out site/dist] [--source-url <where files of the repository can be read>]`.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SITE = join(ROOT, 'site');
const PAGES = join(SITE, '.pages');

const GATEWAY_BASE = '/docs/';

const { values } = parseArgs({
  options: {
    base: { type: 'string', default: GATEWAY_BASE },
    out: { type: 'string', default: join(SITE, 'dist') },
    'source-url': { type: 'string' },
  },
});

function write(directory: string, path: string, text: string): void {
  const file = join(directory, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

async function buildSite(base: string, out: string, sourceUrl: string | null): Promise<void> {
  const document = await openApiDocument();
  const platform = platformApiPage(await openApiDocument('platform'));
  const documents = documentPages(ROOT, sourceUrl);
  const pages = [...documents, ...apiPages(document), platform, ...eventPages(document), errorPage()];
  const sidebar = sidebarOf(pages, document);
  rmSync(PAGES, { recursive: true, force: true });
  for (const page of pages) write(PAGES, page.path, (page.path === 'index.md' ? homePage(page) : page).text);
  cpSync(join(ROOT, 'docs/screenshots'), join(PAGES, 'public/screenshots'), { recursive: true });
  cpSync(join(ROOT, 'src/api/portal/assets/heliograph.svg'), join(PAGES, 'public/icon.svg'));
  write(PAGES, 'navigation.json', JSON.stringify({ sidebar }));
  // A visitor of the gateway never sees half a site.
  const fresh = `${out}.new`;
  rmSync(fresh, { recursive: true, force: true });
  await build(SITE, { base, outDir: fresh });
  for (const { path, text } of pages) write(fresh, path, withoutFrontmatter(text));
  write(fresh, 'llms.txt', llmsText(sidebar, pages, base));
  write(fresh, 'llms-full.txt', llmsFullText(sidebar, pages, base));
  const broken = brokenLinks(fresh, base);
  const empty = emptyPages(
    fresh,
    pages.map(({ path }) => path),
  );
  if (empty.length > 0) throw new Error(`pages without content:\n${empty.join('\n')}`);
  if (broken.length > 0) throw new Error(`links that lead nowhere:\n${broken.join('\n')}`);
  write(fresh, STAMP_FILE, sourceStamp(ROOT));
  rmSync(out, { recursive: true, force: true });
  renameSync(fresh, out);
}

process.env.NODE_ENV = 'production';
await becomeBuilder(SITE);
await buildSite(values.base, resolve(values.out), values['source-url'] ?? null);
if (!existsSync(join(values.out, 'index.html'))) throw new Error('the site has no first page');
process.stdout.write(`${values.out}\n`);
