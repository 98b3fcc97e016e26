import type { FastifyInstance } from 'fastify';
import type { Config } from '../../platform/config/config.ts';
import { escapeHtml, htmlPage, sendPage } from './html-page.ts';

/** GET /: says what answers here, for whoever opens it in a browser. */
export function homePage(scope: FastifyInstance, config: Config): void {
  const links = [
    ['Portal', '/portal', 'webhook endpoints, deliveries and API keys'],
    ['External API', '/docs', 'the REST API, to read and to try out'],
    ['OpenAPI', '/api/external/openapi.json', 'the OpenAPI document'],
    ['Errors', '/docs/errors', 'the meaning of every error code'],
    ['Connection test', '/api/external/test', 'works without an API key'],
    // Where it runs inside a production network is nobody's business outside of it.
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
