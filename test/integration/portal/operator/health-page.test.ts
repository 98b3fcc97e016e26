import { expect, test } from 'vitest';
import { shownUrl } from '../../../../src/platform/http/outbound-url.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import {
  finishHousekeepingStep,
  reportWorker,
  takeHousekeepingStep,
} from '../../../../src/platform/postgres/worker-processes.ts';
import { addEndpoint } from '../../../support/test-accounts.ts';
import { startTestApi, WABA } from '../../api/api-harness.ts';
import { publishOne } from '../../deliveries/event-fixtures.ts';
import { markupProblems } from '../markup-problems.ts';
import { addUser, tenantOf } from '../portal-browser.ts';

test('the health page says which step of housekeeping fails, and why', async () => {
  const api = await startTestApi();
  const operator = await addUser(api, { email: 'op@host.example', role: 'operator', tenantId: null });
  for (const [step, error] of [
    ['retention', 'others hold the <tables>'],
    ['sessions', null],
  ] as const) {
    await takeHousekeepingStep(api.database, step, 1_000);
    await finishHousekeepingStep(api.database, step, { error, nextMs: 1_000 });
  }
  const { body } = await operator.get('/portal/operator/health');
  expect(await markupProblems(body)).toEqual([]);
  expect(body).toContain('others hold the &lt;tables&gt;');
  expect(body.match(/ OK</g)).toHaveLength(1);
  expect(body.match(/ Failing</g)).toHaveLength(1);
  expect(body).toContain('<summary>1 of 2 steps succeeded</summary>');
});

test('the health page begins with the endpoints that fail', async () => {
  const api = await startTestApi();
  const operator = await addUser(api, { email: 'op@host.example', role: 'operator', tenantId: null });
  const tile = (count: number) => new RegExp(`<dt>Failing endpoints</dt><dd>${count}</dd>`);
  expect((await operator.get('/portal/operator/health')).body).toMatch(tile(0));
  const failing = await addEndpoint(api.database, WABA, 'https://down.example/hook');
  await addEndpoint(api.database, WABA, 'https://up.example/hook');
  await query(
    api.database,
    `update webhook_endpoints set mode = 'probing', next_probe_at = now() where id = ?`,
    [failing.id],
  );
  const { body } = await operator.get('/portal/operator/health');
  expect(await markupProblems(body)).toEqual([]);
  expect(body).toMatch(tile(1));
  expect(body.indexOf('down.example')).toBeGreaterThan(0);
  expect(body.indexOf('down.example')).toBeLessThan(body.indexOf('<h2>Dependencies</h2>'));
});

test('the health page and the page of an endpoint say how much waits, and the last error', async () => {
  const api = await startTestApi();
  const operator = await addUser(api, { email: 'op@host.example', role: 'operator', tenantId: null });
  const tenantId = await tenantOf(api.database, WABA);
  const member = await addUser(api, { email: 'member@store.example', role: 'member', tenantId });
  const { id } = await addEndpoint(api.database, WABA, 'https://down.example/hook');
  await publishOne(api.database, 'wamid.one', { wabaId: WABA });
  await publishOne(api.database, 'wamid.two', { wabaId: WABA });
  await query(
    api.database,
    `update deliveries set last_status_code = 503 where id = (select min(cast(id as text))::uuid from deliveries)`,
  );
  const pages = async () => {
    const health = (await operator.get('/portal/operator/health')).body;
    const page = (await operator.get(`/portal/w/${WABA}/endpoints/${id}`)).body;
    for (const body of [health, page]) expect(await markupProblems(body)).toEqual([]);
    return { health: /<h2>Failing.*?<\/table>/s.exec(health)?.[0] ?? '', page };
  };
  const setMode = `update webhook_endpoints set mode = 'probing', mode_reason = ?, failing_since = now() where id = ?`;
  await query(api.database, setMode, ['most attempts fail: 21 of the last 21', id]);
  const { health, page } = await pages();
  const reason = 'most attempts fail: 21 of the last 21; last error: the endpoint returned 503';
  expect(health).toContain(reason);
  expect(health).toMatch(new RegExp(`>${id}: https://down.example/.*<td class="number">2 `, 's'));
  expect(page).toContain(`Reason: ${reason}`);
  expect(page).toContain('2 until a probe succeeds');
  expect(page).toMatch(new RegExp(`In Temporal: <a href="[^"]*/workflows/endpoint%2F${id}"`));
  const own = (await member.get(`/portal/w/${WABA}/endpoints/${id}`)).body;
  expect(own).toContain(`Reason: ${reason}`);
  expect(own).not.toContain('In Temporal');
  await query(api.database, setMode, ['most attempts fail: the endpoint returned 503', id]);
  expect((await pages()).health).not.toContain('last error');
  await query(api.database, `update webhook_endpoints set mode = 'open', mode_reason = null where id = ?`, [
    id,
  ]);
  expect((await pages()).health).toMatch(/<td class="">the endpoint returned 503<\/td>/);
  await query(api.database, 'update webhook_endpoints set failing_since = null where id = ?', [id]);
  expect((await pages()).page).not.toContain('In Temporal');
});

test('the health page shows how many attempts have a workflow run, over all workers that live', async () => {
  const api = await startTestApi();
  const operator = await addUser(api, { email: 'op@host.example', role: 'operator', tenantId: null });
  const tile = async () => {
    const { body } = await operator.get('/portal/operator/health');
    expect(await markupProblems(body)).toEqual([]);
    return /<dt>Attempts with a run<\/dt>(.*?)<\/div>/s.exec(body)?.[1]?.replaceAll(/<[^>]*>/g, ' ');
  };
  expect(await tile()).toMatch(/–.*of 0 in 15 minutes/s);
  await reportWorker(api.database, 'host-1:1', { attempts: 900, withRun: 225 });
  await reportWorker(api.database, 'host-1:2', { attempts: 100, withRun: 100 });
  await reportWorker(api.database, 'host-1:3', { attempts: 5_000, withRun: 0 });
  await query(
    api.database,
    `update worker_processes set seen_at = now() - interval '1 minute' where id = 'host-1:3'`,
  );
  expect(await tile()).toMatch(/33 %.*of 1,000 in 15 minutes/s);
});

test('the self-check of a WABA knows what is partly wrong, and what it does not know', async () => {
  const api = await startTestApi();
  const operator = await addUser(api, { email: 'op@host.example', role: 'operator', tenantId: null });
  const statusOf = async (question: string) => {
    const { body } = await operator.get(`/portal/operator/wabas/${WABA}`);
    expect(await markupProblems(body)).toEqual([]);
    const [, status, result] =
      new RegExp(`> ([A-Za-z]+)</span></td><td[^>]*>${question}</td><td[^>]*>(.*?)</td>`, 's').exec(body) ??
      [];
    return `${status}: ${result?.replace(/<br>.*/s, '')}`;
  };
  const question = 'Do its endpoints accept deliveries\\?';
  expect(await statusOf('Are its numbers updated from upstream\\?')).toBe('Unknown: Not looked up yet.');
  expect(await statusOf(question)).toBe('Problem: There is no endpoint.');
  const { id } = await addEndpoint(api.database, WABA, 'https://down.example/hook');
  expect(await statusOf(question)).toBe('OK: 1 open.');
  await addEndpoint(api.database, WABA, 'https://up.example/hook');
  await query(api.database, 'update webhook_endpoints set failing_since = now() where id = ?', [id]);
  expect(await statusOf(question)).toBe(
    `Attention: 1 open, 1 failing: endpoint ${id} (${shownUrl('https://down.example/hook')}).`,
  );
});
