import fastify, { LogController } from 'fastify';
import { requireDevelopment, requireLoopback } from '../loopback-only.ts';
import type { RunningServer } from '../upstream-server.ts';
import { createBehaviours } from './behaviour.ts';
import { createEndpointSecrets } from './endpoint-secrets.ts';
import { eventLine } from './event-line.ts';
import { createReceivedWebhooks } from './received-webhooks.ts';
import { receiverControl } from './receiver-control.ts';
import { type ReceiverContext, registerWebhookReceipt } from './webhook-routes.ts';

/** How to run the sample tenant. */
export type ReceiverConfig = {
  /** A loopback address. */
  host: string;
  /** 0 picks a free port. */
  port: number;
  /** JSON `{secrets:[…]}`, read again when it changes. */
  secretsFile?: string;
  secrets?: readonly string[];
  /** Takes one line per webhook, without the line break; standard output unless told. */
  writeLine?: (line: string) => void;
  useColor?: boolean;
};

const MAX_BODY_BYTES = 16 * 1024 * 1024;

/**
 * Starts the sample tenant server, which checks, prints and keeps the webhooks that it receives.
 * @throws SandboxRefusedError in production mode and for hosts other than loopback.
 */
export async function startReceiver(config: ReceiverConfig): Promise<RunningServer> {
  requireDevelopment();
  requireLoopback(config.host);
  const stopping = new AbortController();
  const writeLine = config.writeLine ?? ((line: string) => process.stdout.write(`${line}\n`));
  const context: ReceiverContext = {
    secrets: createEndpointSecrets({
      ...(config.secretsFile === undefined ? {} : { file: config.secretsFile }),
      ...(config.secrets === undefined ? {} : { secrets: config.secrets }),
    }),
    received: createReceivedWebhooks(),
    behaviours: createBehaviours(),
    print: (webhook) => writeLine(eventLine(webhook, config.useColor ?? false)),
    signal: stopping.signal,
  };
  const app = fastify({
    logger: { level: 'silent' },
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: true,
    ajv: { customOptions: { removeAdditional: false, coerceTypes: false, allowUnionTypes: true } },
  });
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    // The signature is over the bytes, so that nothing may parse them first.
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    registerWebhookReceipt(scope, context);
  });
  await app.register((scope) => receiverControl(scope, context));
  const url = await app.listen({ host: config.host, port: config.port });
  return {
    url,
    close: async () => {
      stopping.abort();
      await app.close();
    },
  };
}
