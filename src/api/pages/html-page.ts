import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyInstance, FastifyReply } from 'fastify';

const STYLE_PATH = '/assets/pages.css';
const MAX_AGE_SECONDS = 300;
const CACHE_CONTROL = `public, max-age=${MAX_AGE_SECONDS}`;

const CONTENT_SECURITY_POLICY =
  "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** A whole page. `title` and `body` are HTML. */
export function htmlPage(title: string, body: string): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${STYLE_PATH}">
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`;
}

/** Sends a page that is the same for everybody. */
export function sendPage(reply: FastifyReply, html: string): FastifyReply {
  return reply
    .header('content-security-policy', CONTENT_SECURITY_POLICY)
    .header('cache-control', CACHE_CONTROL)
    .type('text/html; charset=utf-8')
    .send(html);
}

/** GET /assets/pages.css: the looks of the pages. */
export function pageStyle(scope: FastifyInstance): void {
  const css = readFileSync(join(import.meta.dirname, 'pages.css'), 'utf8');
  scope.get(STYLE_PATH, (_request, reply) =>
    reply.header('cache-control', CACHE_CONTROL).type('text/css; charset=utf-8').send(css),
  );
}

/** Text as HTML. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
