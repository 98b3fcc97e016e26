import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Config } from '../../platform/config/config.ts';
import { ERROR_CODES } from '../errors/error-codes.ts';
import { docsSite } from './docs-site.ts';
import { securityText } from './security-text.ts';

export async function pageRoutes(
  scope: FastifyInstance,
  { config, docsFolder }: { config: Config; docsFolder: string | undefined },
): Promise<void> {
  pageStyle(scope);
  homePage(scope, config);
  securityText(scope, config.api);
  const errors = htmlPage('Errors · Heliograph', errorsBody());
  await docsSite(scope, (reply) => sendPage(reply, errors), docsFolder);
}

function homePage(scope: FastifyInstance, config: Config): void {
  const links = [
    ['Portal', '/portal', 'webhook endpoints, deliveries and API keys'],
    ['Documentation', '/docs', 'for tenant developers and operators, with the API reference'],
    ['OpenAPI', '/api/external/openapi.json', 'the OpenAPI document'],
    ['Errors', '/docs/errors', 'the meaning of every error code'],
    ['Connection test', '/api/external/test', 'works without an API key'],
    // Where it runs inside a production network is not for the public.
    ...(config.mode === 'development' ? [['Temporal UI', config.temporal.uiUrl, 'workflows']] : []),
  ];
  const entries = links.map(([name = '', url = '', about = '']) => {
    const href = escapeHtml(url);
    return `<dt><a href="${href}">${name}</a></dt>\n<dd>${about}: <code>${href}</code></dd>`;
  });
  const html = htmlPage(
    'Heliograph',
    `<h1>Heliograph</h1>
<p>Gateway between the WhatsApp Business Platform and your own server.</p>
<dl>
${entries.join('\n')}
</dl>`,
  );
  scope.get('/', (_request, reply) => sendPage(reply, html));
}

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

function errorsBody(): string {
  const codes = Object.entries(ERROR_CODES).sort(([, one], [, other]) => one.status - other.status);
  const contents = codes.map(
    ([code, { status }]) => `<li>${status} <a href="#${code}"><code>${code}</code></a></li>`,
  );
  const entries = codes.map(
    ([code, { status, type, message, advice }]) =>
      `<h2 id="${code}"><a href="#${code}"><code>${code}</code></a> <small>${status} · ${type}</small></h2>
<p>${escapeHtml(message)}</p>
<p>${escapeHtml(advice)}</p>`,
  );
  return `<h1>Errors</h1>
<p>Every error answer is JSON of this shape. Tell <code>code</code> apart in programs; <code>message</code> is for people and may change. The request id is also in the header <code>X-Request-Id</code>. The API itself: <a href="/api/external/openapi.json">/api/external/openapi.json</a>.</p>
<pre><code>${escapeHtml(EXAMPLE)}</code></pre>
<ul class="codes">
${contents.join('\n')}
</ul>
${entries.join('\n')}`;
}

const STYLE_PATH = '/assets/pages.css';
const MAX_AGE_SECONDS = 300;
const CACHE_CONTROL = `public, max-age=${MAX_AGE_SECONDS}`;

const CONTENT_SECURITY_POLICY =
  "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** A whole page. `title` and `body` are HTML. */
function htmlPage(title: string, body: string): string {
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

function sendPage(reply: FastifyReply, html: string): FastifyReply {
  return reply
    .header('content-security-policy', CONTENT_SECURITY_POLICY)
    .header('cache-control', CACHE_CONTROL)
    .type('text/html; charset=utf-8')
    .send(html);
}

function pageStyle(scope: FastifyInstance): void {
  const css = readFileSync(join(import.meta.dirname, 'pages.css'), 'utf8');
  scope.get(STYLE_PATH, (_request, reply) =>
    reply.header('cache-control', CACHE_CONTROL).type('text/css; charset=utf-8').send(css),
  );
}

function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
