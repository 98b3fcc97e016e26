import { beforeEach, expect, test } from 'vitest';
import { repositoryFile } from '../../../unit/deployment/compose-file.ts';
import { startTestApi, type TestApi, WABA } from '../../api/api-harness.ts';
import { addUser, type PortalBrowser, tenantOf } from '../portal-browser.ts';

let api: TestApi;
let member: PortalBrowser;

beforeEach(async () => {
  api = await startTestApi();
  const tenantId = await tenantOf(api.database, WABA);
  member = await addUser(api, { email: 'member@store.example', role: 'member', tenantId });
});

/** How a client uses an event, by event type and member. */
const RULES: [type: string, member: string, rule: string][] = [
  ['order', 'data.service.items', 'Prefer these items when you render the order.'],
  ['order', 'data.order.product_items', 'Keep reading these lines where you parse upstream’s own format.'],
  ['payment', 'data.status', 'After `captured`, send `order_status` messages to the customer.'],
  ['media.ready', 'data.mediaUrl', 'Prefer it to `mediaPath` when you download the file.'],
];

/** Text between tags, with entities that occur in the rules. */
const textOf = (markup: string) => markup.replace(/<[^>]*>/g, ' ').replaceAll('&#39;', '’');

test.each(RULES)(
  '%s: the rule for %s is in the docs, the API document and the portal',
  async (type, path, rule) => {
    const docs = repositoryFile('docs/tenants/events.md').replace(/\s+/g, ' ');
    const section = docs.split(`## \`${type}\``)[1]?.split(' ## ')[0] ?? '';
    expect(section).toContain(rule);
    const { body: document } = await api.app.inject({ url: '/api/external/openapi.json' });
    expect(document).toContain(rule);
    const { body } = await member.get(`/portal/w/${WABA}/event-types/${type}`);
    const row = body.split('<tr ').find((cells) => cells.includes(`<code>${path}</code>`)) ?? '';
    expect(textOf(row)).toContain(rule.replaceAll('`', ''));
  },
);

test('polling for media ends for media that can never be stored', async () => {
  const rule = 'until `mediaPending` is false: then `mediaUrl` is a link, or `mediaError` is present';
  expect(repositoryFile('docs/tenants/api.md').replace(/\s+/g, ' ')).toContain(rule);
  const { body: document } = await api.app.inject({ url: '/api/external/openapi.json' });
  expect(document).toContain(rule);
});
