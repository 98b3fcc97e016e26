import { expect, test } from 'vitest';
import { endpointStatus } from '../../../../src/features/endpoints/endpoints.ts';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { addEndpoint, testSecretBox } from '../../../support/test-accounts.ts';
import { startTestApi, WABA } from '../../api/api-harness.ts';
import { externalClient } from '../../api/external-client.ts';
import { publishOne } from '../../deliveries/event-fixtures.ts';
import { markupProblems } from '../markup-problems.ts';
import { addUser } from '../portal-browser.ts';

async function endpointPage() {
  const api = await startTestApi();
  const { database } = api;
  const operator = await addUser(api, { email: 'op@host.example', role: 'operator', tenantId: null });
  const { id } = await addEndpoint(database, WABA, 'https://back.example/hook');
  const page = async () => {
    const { body } = await operator.get(`/portal/w/${WABA}/endpoints/${id}`);
    expect(await markupProblems(body)).toEqual([]);
    return body;
  };
  const endpoint = (changes: string) => execute(database, `update endpoint_health set ${changes}`);
  return { api, database, operator, id, page, endpoint };
}

test('an endpoint that works off its backlog is recovering on its page, in its list, in the API and for commands', async () => {
  const { api, database, operator, id, page, endpoint } = await endpointPage();
  await publishOne(database, 'wamid.before');
  await execute(database, `update delivery_queue set created_at = now() - interval '1 hour'`);
  await endpoint(`mode_changed_at = now() - interval '1 day', recovered_at = now() - interval '3 minutes'`);
  await execute(
    database,
    `insert into endpoint_minutes (endpoint_id, minute, successes)
     select :id, date_trunc('minute', now()) - n * interval '1 minute', 600 from generate_series(1, 2) as n`,
    { id },
  );
  expect(await page()).toMatch(
    /Recovering<.*The endpoint accepts deliveries again\. Events that waited are being sent\..*accepting deliveries for 3 min · 1,200 delivered since then/s,
  );
  expect(await page()).not.toMatch(/failing/i);
  expect(await page()).toContain(`/workflows/endpoint%2F${id}"`);
  expect((await operator.get(`/portal/w/${WABA}/endpoints`)).body).toContain('Recovering');
  const call = await externalClient(api);
  const shown = (await call('GET', `/api/external/webhook-endpoints/${id}`)).json();
  const { recoveringSince } = await endpointStatus({ database, secretBox: testSecretBox }, WABA, id);
  expect(shown).toMatchObject({
    failingSince: null,
    recoveringSince: recoveringSince?.toISOString(),
    waiting: { due: 1 },
  });

  // Only what it refused for itself is left.
  await execute(
    database,
    `update delivery_queue set state = 'retrying', attempts = 1, next_attempt_at = now() + interval '1 hour'`,
  );
  expect(await page()).toContain('Events are sent as they arrive.');
  expect((await call('GET', `/api/external/webhook-endpoints/${id}`)).json()).toMatchObject({
    recoveringSince: null,
  });
});

test('the page of an endpoint leads to its run in Temporal only while something waits because of trouble', async () => {
  const { database, id, page, endpoint } = await endpointPage();
  const link = `/workflows/endpoint%2F${id}"`;
  for (const mode of ['open', 'paused', 'disabled', 'probing']) {
    await endpoint(`mode = '${mode}', failing_since = now()`);
    expect([mode, await page()]).toEqual([mode, expect.not.stringContaining(link)]);
  }
  await publishOne(database, 'wamid.waits');
  for (const mode of ['paused', 'disabled', 'probing']) {
    await endpoint(`mode = '${mode}', failing_since = null`);
    expect([mode, await page()]).toEqual([mode, expect.stringContaining(link)]);
  }
  await endpoint(`mode = 'open'`);
  expect(await page()).not.toContain(link);
  await execute(
    database,
    `update delivery_queue set state = 'retrying', attempts = 1, next_attempt_at = now() + interval '1 hour'`,
  );
  expect(await page()).toContain(link);
});
