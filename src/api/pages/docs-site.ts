import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../errors/api-error.ts';

/** Where `npm run docs` builds the site; it is in the image, and made beside `npm start`. */
const SITE = fileURLToPath(new URL('../../../site/dist', import.meta.url));

const MAX_AGE_SECONDS = 300;

/** Files whose names have the hash of their content. */
const HASHED = /[/\\]assets[/\\].+\.[\w-]{8,10}\.\w+$/;

/**
 * The documentation at /docs as static files, and /llms.txt. Where it is not built, /docs leads to /docs/errors, and
 * `plainErrors` answers /docs/errors, which every error of the API names.
 */
export async function docsSite(
  scope: FastifyInstance,
  plainErrors: (reply: FastifyReply) => FastifyReply,
  site = SITE,
): Promise<void> {
  let isBuilt = false;
  // `npm start` builds it while this process runs already.
  const hasSite = () => {
    isBuilt ||= existsSync(join(site, 'index.html'));
    return isBuilt;
  };
  await scope.register(fastifyStatic, {
    root: site,
    serve: false,
    redirect: true,
    cacheControl: false,
    extensions: ['html'],
    setHeaders: (reply, path) => siteHeaders(reply, path),
    suppressWarning: true,
  });
  await scope.register(async (docs) => docsRoutes(docs, { site, hasSite, plainErrors }), { prefix: '/docs' });
  for (const file of ['llms.txt', 'llms-full.txt']) {
    scope.get(`/${file}`, (_request, reply) => (hasSite() ? reply.sendFile(file) : reply.callNotFound()));
  }
}

type Site = { site: string; hasSite: () => boolean; plainErrors: (reply: FastifyReply) => FastifyReply };

function docsRoutes(docs: FastifyInstance, { site, hasSite, plainErrors }: Site): void {
  let missing: Buffer | null = null;
  docs.setNotFoundHandler((request, reply) => {
    const isPage = hasSite() && acceptsHtml(request);
    if (!isPage) throw new ApiError('route_not_found');
    missing ??= readFileSync(join(site, '404.html'));
    siteHeaders(reply, '404.html');
    return reply.code(404).type('text/html; charset=utf-8').send(missing);
  });
  // Links within the site are relative, so the address of its first page ends with a slash.
  docs.get('/', (request, reply) => {
    const [path = ''] = request.url.split('?', 1);
    if (!hasSite()) return reply.redirect('/docs/errors');
    return path.endsWith('/') ? reply.sendFile('index.html') : reply.redirect('/docs/');
  });
  docs.get('/errors', (_request, reply) => (hasSite() ? reply.sendFile('errors.html') : plainErrors(reply)));
  docs.get<{ Params: { '*': string } }>('/*', (request, reply) => {
    const { '*': path } = request.params;
    if (!hasSite()) return reply.callNotFound();
    const page = pageBesideFolder(site, path);
    if (page === null) return reply.sendFile(path);
    if (!path.endsWith('/')) return reply.sendFile(page.file);
    return reply.redirect(
      `/docs/${page.path}${request.url.slice(request.url.split('?', 1).join('').length)}`,
      301,
    );
  });
}

/** The page of this path where a folder has the same name, which would be looked into instead. */
function pageBesideFolder(site: string, path: string): { path: string; file: string } | null {
  if (!/^(?:[\w-]+\/)*[\w-]+\/?$/.test(path)) return null;
  const plain = path.replace(/\/$/, '');
  const file = `${plain}.html`;
  const isBeside = existsSync(join(site, plain)) && existsSync(join(site, file));
  return isBeside ? { path: plain, file } : null;
}

/** Nothing leaves the host, and no script or style stands in the page itself. */
const STRICT_SCRIPT_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

function siteHeaders(reply: FastifyReply, path: string): void {
  const cache = HASHED.test(path)
    ? 'public, max-age=31536000, immutable'
    : `public, max-age=${MAX_AGE_SECONDS}`;
  reply.header('cache-control', cache).header('content-security-policy', STRICT_SCRIPT_POLICY);
}

function acceptsHtml(request: FastifyRequest): boolean {
  return request.headers.accept?.includes('text/html') === true;
}
