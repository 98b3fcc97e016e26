import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Webhook = { headers: IncomingHttpHeaders; body: string; accepted: boolean };

export type TenantServer = {
  url: string;
  /** Every webhook that came, answered or not, in the order of arrival. */
  received(): readonly Webhook[];
  /** Those that were answered 200. */
  accepted(): readonly Webhook[];
  /** While hanging it takes requests and answers none. */
  hang(hanging: boolean): void;
  goAway(): Promise<void>;
  comeBack(): Promise<void>;
};

/** A tenant's server that can hang, go away and come back on the same port. */
export async function startTenantServer(): Promise<TenantServer> {
  const webhooks: Webhook[] = [];
  let hanging = false;
  let held: ServerResponse[] = [];
  let port = 0;
  let server: Server;

  const listen = async () => {
    server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const webhook = { headers: request.headers, body: Buffer.concat(chunks).toString(), accepted: false };
      webhooks.push(webhook);
      if (hanging) {
        held.push(response);
        return;
      }
      webhook.accepted = true;
      response.end('ok');
    });
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    port = (server.address() as AddressInfo).port;
  };
  await listen();
  return {
    url: `http://127.0.0.1:${port}`,
    received: () => webhooks,
    accepted: () => webhooks.filter((webhook) => webhook.accepted),
    hang: (now) => {
      hanging = now;
      if (now) return;
      for (const response of held) response.destroy();
      held = [];
    },
    goAway: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
    comeBack: listen,
  };
}
