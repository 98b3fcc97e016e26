import type { FastifyInstance } from 'fastify';
import { ERROR_CODES } from '../errors/error-codes.ts';
import { escapeHtml, htmlPage, sendPage } from './html-page.ts';

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
  const html = htmlPage('Errors · Heliograph', body());
  scope.get('/docs/errors', (_request, reply) => sendPage(reply, html));
}

function body(): string {
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
<p>Every error answer is JSON of this shape. Tell <code>code</code> apart in programs; <code>message</code> is for people and may change. The request id is also in the header <code>X-Request-Id</code>. The API itself: <a href="/docs">/docs</a>.</p>
<pre><code>${escapeHtml(EXAMPLE)}</code></pre>
<ul class="codes">
${contents.join('\n')}
</ul>
${entries.join('\n')}`;
}
