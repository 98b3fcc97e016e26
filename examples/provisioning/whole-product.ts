import { makeProduct } from '../product/server.ts';
import { connected, connectLink } from './connect-number.ts';
import {
  bringAllIn,
  type Customer,
  follow,
  type Known,
  platformApi,
  replaceKey,
  suspend,
  tenantsOf,
} from './provision.ts';

// Plays a product with 200 customers on an installation of yours, from nothing to the portal in its own page. Run again, it
// goes on from what is there, whatever was killed in between.

const { HELIOGRAPH_PLATFORM_KEY: platformKey = '', HELIOGRAPH_URL: gateway = 'http://127.0.0.1:8080' } =
  process.env;
/** One of HELIOGRAPH_PORTAL_PRODUCT_ORIGINS. */
const origin = process.env.PRODUCT_ORIGIN ?? 'http://localhost:3000';
const say = (text: string) => void process.stdout.write(`${text}\n`);
const ask = platformApi(gateway, platformKey);

const customers = Array.from({ length: 200 }, (_, n): Customer => {
  return { id: `shop-${n}`, name: `Shop ${n}`, wabaId: `9600000000${String(n).padStart(5, '0')}` };
});
const [first] = customers as [Customer, ...Customer[]];

// A product keeps the keys in its vault: each is answered once, to one of the two.
const keys = new Map<string, string>();
const keep = async ({ id }: Customer, apiKey: string) => void keys.set(id, apiKey);
await Promise.all([bringAllIn(ask, customers, keep), bringAllIn(ask, customers, keep)]);
say(`${customers.length} customers are there; ${keys.size} have a key that is new.`);

// Of earlier runs, the keys are lost with their process.
const lost = customers.slice(0, -2).filter(({ id }, n) => n < 20 || !keys.has(id));
for (const customer of lost) keys.set(customer.id, await replaceKey(ask, customer));
for (const customer of customers.slice(-2)) await suspend(ask, customer, 'The invoice is due.');
say(`${lost.length} keys are replaced, and two customers are suspended.`);

const user = { externalId: 'u_17', email: 'asha@store.example', name: 'Asha' };
const signedIn = () => ({ tenant: first.id, user, wabaIds: [first.wabaId] });
makeProduct({ gateway, platformKey, origin, signedIn }).listen(Number(new URL(origin).port), 'localhost');
const returns = { successUrl: `${origin}/connected`, failureUrl: `${origin}/not-connected` };
const { id: linkId, url } = await connectLink(ask, first, { visit: 'a-number-for-shop-0', ...returns });
say(`Connect a number as the customer: ${url}`);
const { state, phoneNumberId } = await connected(ask, first, linkId);
say(`The link is ${state}: ${phoneNumberId ?? 'no number'}`);

const known = new Map<string, Known>();
await follow(ask, known, null);
for (const tenant of await tenantsOf(ask)) {
  const told = known.get(tenant.externalId ?? '');
  const wabas = tenant.wabas.map(({ wabaId }) => wabaId).sort();
  if (told !== undefined && (told.state !== tenant.state || String([...told.wabas].sort()) !== String(wabas)))
    throw new Error(`The feed says otherwise of ${tenant.externalId}.`);
}
say(`The feed says of ${known.size} tenants what the API lists.`);
say(`The portal in a page of the product: ${origin}/webhooks (Ctrl-C ends it)`);
