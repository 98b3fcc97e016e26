import { createServer, type IncomingMessage, type Server } from 'node:http';

type Person = { externalId: string; email: string; name: string };

export type ProductSettings = {
  /** Where Heliograph is, and the key of your program (`hp_…`). */
  gateway: string;
  platformKey: string;
  /** Your own origin, which HELIOGRAPH_PORTAL_PRODUCT_ORIGINS lists. */
  origin: string;
  /** Who is signed in at your product, of which customer, and for which of its WABAs (left out: all); null: no one is. */
  signedIn: (request: IncomingMessage) => { tenant: string; user: Person; wabaIds?: string[] } | null;
};

/** A page of your product with the webhooks of the customer who is signed in. */
export function makeProduct({ gateway, platformKey, origin, signedIn }: ProductSettings): Server {
  return createServer(async (request, response) => {
    response.setHeader('cache-control', 'no-store').setHeader('content-type', 'text/html; charset=utf-8');
    const visit = signedIn(request);
    if (visit === null) return response.writeHead(401).end('Sign in first.');
    // A new link for each visit: it works once.
    const made = await fetch(`${gateway}/api/platform/tenants/${visit.tenant}/portal-sessions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${platformKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        user: visit.user,
        role: 'admin',
        capabilities: ['view', 'manage_endpoints', 'retry'],
        wabaIds: visit.wabaIds,
        page: 'endpoints',
        embed: { origin },
        refreshUrl: `${origin}/webhooks`,
      }),
    });
    if (!made.ok) return response.writeHead(502).end('The portal is not available. Try again in a minute.');
    const { url } = (await made.json()) as { url: string };
    return response.end(`<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Webhooks</title>
<h1>Webhooks</h1><iframe title="Webhooks" src="${url}" style="border:0;width:100%;height:80vh"></iframe>`);
  });
}
