import { createHmac, randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import fastify from 'fastify';
import { pino } from 'pino';
import type { Config } from '../../platform/config/config.ts';
import { type Database, undone } from '../../platform/postgres/database.ts';
import { makeApiMetrics } from '../api-metrics.ts';
import { addErrorHandling, makeErrorSender } from '../plugins/errors.ts';
import { addBaseHeaders, addRequestMetrics } from '../plugins/request-hooks.ts';
import { serverOptions } from '../server-options.ts';
import { upstreamWebhookRoutes } from './upstream-webhook.ts';

const REQUESTS = 100;
const SIDE_BY_SIDE = 4;

/**
 * Receives a few made-up webhooks at its own listener, in a transaction that is rolled back: connection, prepared
 * statement and compiled code are there before the first real one comes. It leaves nothing behind; should it fail,
 * nothing is missing but speed.
 */
export async function rehearseIngress(config: Config, database: Database): Promise<void> {
  const [appSecret] = config.upstream.appSecrets;
  if (appSecret === undefined) return;
  await undone(database, async (trx) => {
    const app = fastify(serverOptions(config, pino({ enabled: false })));
    addRequestMetrics(app, makeApiMetrics());
    addBaseHeaders(app, config);
    addErrorHandling(app, makeErrorSender(config.api.publicUrl));
    app.register(upstreamWebhookRoutes, { config, database: trx });
    const agent = new Agent({ keepAlive: true });
    try {
      await app.listen({ host: '127.0.0.1', port: 0 });
      const { port } = app.server.address() as AddressInfo;
      const send = async () => {
        for (let sent = 0; sent < REQUESTS / SIDE_BY_SIDE; sent += 1)
          await post(agent, port, appSecret.secret);
      };
      await Promise.all(Array.from({ length: SIDE_BY_SIDE }, send));
    } finally {
      agent.destroy();
      await app.close();
    }
  });
}

async function post(agent: Agent, port: number, secret: string): Promise<void> {
  const body = JSON.stringify({
    object: 'whatsapp_business_account',
    entry: [{ id: '0', changes: [] }],
    id: randomUUID(),
  });
  const signature = createHmac('sha256', secret).update(body).digest('hex');
  const headers = { 'content-type': 'application/json', 'x-hub-signature-256': `sha256=${signature}` };
  await new Promise<void>((resolve, reject) => {
    const sent = request({
      agent,
      port,
      host: '127.0.0.1',
      path: '/upstream/webhook',
      method: 'POST',
      headers,
    });
    sent.once('response', (response) => response.resume().once('end', resolve)).once('error', reject);
    sent.end(body);
  });
}
