import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { ERROR_CODES } from '../errors/error-codes.ts';

const STYLE = `body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#1c2430}
h2{font-size:1.05rem;margin:2rem 0 .25rem}h2 small{font-weight:400;color:#5b6676}
code,pre{font:14px/1.5 ui-monospace,monospace}pre{background:#f3f5f8;padding:1rem;overflow-x:auto}
p{margin:.25rem 0}:target{background:#fff3c4}`;

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

const EXAMPLE = `{
  "error": {
    "type": "invalid_request_error",
    "code": "invalid_parameter",
    "message": "The parameter must be <= 100.",
    "param": "limit",
    "docUrl": "…/docs/errors#invalid_parameter",
    "requestId": "req_…"
  }
}`;

/** GET /docs/errors: what every error code means, where `docUrl` of an error answer leads. */
export function errorPage(scope: FastifyInstance): void {
  const html = page();
  scope.get('/docs/errors', (_request, reply) => {
    reply.header(
      'content-security-policy',
      `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; frame-ancestors 'none'`,
    );
    reply.header('cache-control', 'public, max-age=300');
    return reply.type('text/html; charset=utf-8').send(html);
  });
}

function page(): string {
  const entries = Object.entries(ERROR_CODES).map(
    ([code, { status, type, message, advice }]) =>
      `<h2 id="${code}"><code>${code}</code> <small>${status} · ${type}</small></h2>\n<p>${escapeHtml(message)}</p>\n<p>${escapeHtml(advice)}</p>`,
  );
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Errors · Heliograph</title><meta name="viewport" content="width=device-width">
<style>${STYLE}</style></head>
<body>
<h1>Errors</h1>
<p>Every error answer is JSON of this shape. Tell <code>code</code> apart in programs; <code>message</code> is for people and may change. The request id is also in the header <code>X-Request-Id</code>.</p>
<pre>${escapeHtml(EXAMPLE)}</pre>
${entries.join('\n')}
</body>
</html>
`;
}

function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
