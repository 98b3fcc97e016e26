import type { LightMyRequestResponse } from 'fastify';
import { expect, test } from 'vitest';
import { addEndpoint } from '../../../support/test-accounts.ts';
import { addConversation, startTestApi, WABA } from '../../api/api-harness.ts';
import { addDelivery } from '../delivery-fixtures.ts';
import { markupProblems } from '../markup-problems.ts';
import { addUser, type PortalBrowser, tenantOf } from '../portal-browser.ts';

const NUMBER = '12025550143';
/** As upstream makes them: the customer's number in base64. */
const WAMID = `wamid.${Buffer.from(`\u001d\u0018${NUMBER}\u0015\u0002`).toString('base64')}`;

/** Whether an address tells the number, as it is, in base64 at any offset, or as hex. */
function tells(address: string): boolean {
  const forms = [0, 1, 2].map((offset) =>
    Buffer.from(`${'x'.repeat(offset)}${NUMBER}`)
      .toString('base64')
      .slice(4, -4),
  );
  const decoded = (address.match(/[\w-]{16,}/g) ?? []).map((one) =>
    Buffer.from(one, 'base64url').toString('latin1'),
  );
  const texts = [decodeURIComponent(address), ...decoded];
  const wanted = [NUMBER, ...forms, Buffer.from(NUMBER).toString('hex'), WAMID];
  return texts.some((text) => wanted.some((form) => text.includes(form)));
}

/** Every address that a page leads to, and the one that led there. */
const addressesOf = ({ headers, body }: LightMyRequestResponse) => [
  String(headers.location ?? ''),
  ...[...body.matchAll(/(?:href|action|data-live)="([^"]*)"/g)].map(([, address]) => address ?? ''),
];

async function search(browser: PortalBrowser, path: string, fields: Record<string, string>) {
  await browser.get(path);
  const sent = await browser.post(`${path}/search`, fields);
  expect([sent.statusCode, sent.headers.location]).toEqual([303, expect.stringContaining(path)]);
  const address = String(sent.headers.location);
  const page = await browser.get(address);
  expect([sent, page].flatMap(addressesOf).filter(tells)).toEqual([]);
  expect(await markupProblems(page.body)).toEqual([]);
  return { address, page };
}

async function startPortal() {
  const api = await startTestApi();
  const tenantId = await tenantOf(api.database, WABA);
  const member = await addUser(api, { email: 'ann@store.example', role: 'member', tenantId });
  const colleague = await addUser(api, { email: 'bob@store.example', role: 'member', tenantId });
  return { api, member, colleague };
}

test('the test knows a number in an address', () => {
  for (const address of [
    `/x?customer=${NUMBER}`,
    `/x?id=${encodeURIComponent(WAMID)}`,
    `/x?a=${btoa(`ab${NUMBER}`)}`,
  ])
    expect([address, tells(address)]).toEqual([address, true]);
});

test('who searches for a customer finds them at an address that does not tell the number, and nobody else can read it', async () => {
  const { api, member, colleague } = await startPortal();
  const list = `/portal/w/${WABA}/conversations`;
  const id = await addConversation(api.database, { waId: NUMBER });
  const other = await addConversation(api.database, { waId: '12025550199' });
  const { address, page } = await search(member, list, { customer: '+1 202-555-0143' });
  expect(page.body).toContain(`${list}/${id}"`);
  expect(page.body).not.toContain(`${list}/${other}"`);
  expect(page.body).toContain('value="+1 202-555-0143"');
  const none = await search(member, list, { customer: '+1 202-555-0100' });
  expect(none.page.body).toContain('There is no conversation with <code>+1 202-555-0100</code>');
  const marked = await search(member, list, { customer: '\u202a0012025550143\u202c' });
  expect(marked.page.body).toContain(`${list}/${id}"`);
  const nobody = await search(member, list, { customer: '12025550143.0' });
  expect(nobody.page.body).toContain('must be a phone number with its country code');
  expect((await search(member, list, { customer: ' ' })).address).toBe(list);
  // A changed address, and another session, even of the same tenant.
  const changed = `${address.slice(0, -3)}${address.endsWith('AAA') ? 'BBB' : 'AAA'}`;
  for (const answer of [await member.get(changed), await colleague.get(address)])
    expect([answer.statusCode, answer.headers.location]).toEqual([303, list]);
  const pages = await member.get(`${list}?customer=${NUMBER}`);
  expect(pages.body).not.toContain(`value="${NUMBER}"`);
});

test('an id of upstream, or a number, is searched among deliveries by a sealed address, an id of ours by an open one', async () => {
  const { api, member, colleague } = await startPortal();
  const list = `/portal/w/${WABA}/deliveries`;
  await addEndpoint(api.database, WABA, 'https://shop.example/hook');
  const [deliveryId = ''] = await addDelivery(api.database, {
    eventId: WAMID,
    state: 'delivered',
    attempts: [],
  });
  await addDelivery(api.database, { eventId: 'wamid.other', state: 'delivered', attempts: [] });
  const found = await search(member, list, { id: WAMID, state: 'delivered', range: '24h' });
  expect(found.page.body).toContain(deliveryId);
  expect(found.page.body).not.toContain('wamid.other');
  expect(found.address).toContain('state=delivered&range=24h&search=');
  const rows = /data-live="([^"]+)"/.exec(found.page.body)?.[1]?.replaceAll('&amp;', '&') ?? '';
  expect((await member.get(rows)).body).toContain(deliveryId);
  const none = await search(member, list, { id: NUMBER });
  expect(none.page.body).toContain('No delivery matches');
  expect((await search(member, list, { id: deliveryId })).address).toBe(`${list}?id=${deliveryId}`);
  const foreign = await colleague.get(found.address);
  expect([foreign.statusCode, foreign.body.includes('search of another session')]).toEqual([422, true]);
  expect(foreign.body).not.toContain('wamid.other');
});
