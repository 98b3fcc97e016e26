import type { FastifyInstance } from 'fastify';
import type { Config } from '../../config/config.ts';

/** GET /: says what answers here, for whoever opens it in a browser. */
export function homePage(scope: FastifyInstance, config: Config): void {
  const { publicUrl } = config.api;
  const lines = [
    'Heliograph: gateway between the WhatsApp Business Platform and your own server.',
    '',
    `Connection test: ${publicUrl}/api/external/test`,
    `Error codes:     ${publicUrl}/docs/errors`,
    // Where it runs inside a production network is nobody's business outside of it.
    ...(config.mode === 'development' ? [`Temporal UI:     ${config.temporal.uiUrl}`] : []),
    '',
    'The portal comes with a later release.',
    '',
  ];
  const text = lines.join('\n');
  scope.get('/', (_request, reply) => reply.type('text/plain; charset=utf-8').send(text));
}
