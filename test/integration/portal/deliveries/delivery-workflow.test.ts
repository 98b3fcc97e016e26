import { beforeEach, expect, test } from 'vitest';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { addEndpoint } from '../../../support/test-accounts.ts';
import { startTestApi, type TestApi, WABA } from '../../api/api-harness.ts';
import { addDelivery } from '../delivery-fixtures.ts';
import { markupProblems } from '../markup-problems.ts';
import { addUser, type PortalBrowser, tenantOf } from '../portal-browser.ts';

const PATH = `/portal/w/${WABA}/deliveries`;

let api: TestApi;
let member: PortalBrowser;

beforeEach(async () => {
  api = await startTestApi();
  await addEndpoint(api.database, WABA, 'https://receiver.example/hook');
  const tenantId = await tenantOf(api.database, WABA);
  member = await addUser(api, { email: 'member@store.example', role: 'member', tenantId });
});

/** The text of the row "Workflow" on the page of a delivery. */
async function workflowRow(id: string): Promise<string> {
  const { body } = await member.get(`${PATH}/${id}`);
  expect(await markupProblems(body)).toEqual([]);
  const [, cell = ''] = /<dt>Workflow<\/dt>\s*<dd>([\s\S]*?)<\/dd>/.exec(body) ?? [];
  return cell.replace(/<[^>]*>/g, '');
}

async function waiting(eventId: string): Promise<string> {
  const [id = ''] = await addDelivery(api.database, { eventId, state: 'pending', attempts: [] });
  return id;
}

test('a delivery that was not attempted has no workflow yet, and its page names the delivery that it waits for', async () => {
  const head = await waiting('wamid.one');
  const behind = await waiting('wamid.one');
  const last = await waiting('wamid.one');
  expect(await workflowRow(head)).toBe('none yet: it was not attempted. It waits for a free worker.');
  for (const id of [behind, last]) {
    expect(await workflowRow(id)).toBe(
      `none yet: it was not attempted. It waits for an earlier event of its ordering key: ${head}.`,
    );
    expect((await member.get(`${PATH}/${id}`)).body).toContain(`href="${PATH}/${head}"`);
  }
});

test.each([
  ['paused', 'It waits until the paused endpoint is enabled.'],
  ['disabled', 'It waits until the disabled endpoint is enabled.'],
  ['probing', 'It waits until the failing endpoint has recovered.'],
])('a delivery that was not attempted because its endpoint is %s says so', async (mode, reason) => {
  const head = await waiting('wamid.one');
  await execute(api.database, 'update endpoint_health set mode = :mode', { mode });
  expect(await workflowRow(head)).toBe(`none yet: it was not attempted. ${reason}`);
});

test('Temporal is not blamed for a delivery without a workflow, because nothing says whether it was away', async () => {
  const [attempted = ''] = await addDelivery(api.database, { eventId: 'wamid.attempted' });
  expect(await workflowRow(attempted)).toBe(
    'none: its worker had no delivery-session workflow open when it was attempted.',
  );
  const [dropped = ''] = await addDelivery(api.database, {
    eventId: 'wamid.dropped',
    state: 'dropped',
    attempts: [],
  });
  expect(await workflowRow(dropped)).toBe('none: it was never attempted.');
});
