import { expect, onTestFinished, test } from 'vitest';
import { shownUrl } from '../../../../src/platform/http/outbound-url.ts';
import { openObjectStore } from '../../../../src/platform/object-store/object-store.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import {
  finishHousekeepingStep,
  reportWorker,
  takeHousekeepingStep,
} from '../../../../src/platform/postgres/worker-processes.ts';
import { addEndpoint } from '../../../support/test-accounts.ts';
import { startTestApi, testConfig, WABA } from '../../api/api-harness.ts';
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

test('figures whose name does not say it have a tooltip with what they count', async () => {
  const api = await startTestApi();
  const operator = await addUser(api, { email: 'op@host.example', role: 'operator', tenantId: null });
  const { body } = await operator.get('/portal/operator/health');
  const tooltipOf = (label: string) =>
    new RegExp(`<div class="stat [a-z]*"\\s+title="([^"]*)"><dt>${label}</dt>`).exec(body)?.[1];
  expect(tooltipOf('Failed bodies')).toMatch(/stored, but could not become events/);
  expect(tooltipOf('Attempts with a run')).toMatch(/in the Temporal UI/);
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
    `update endpoint_health set mode = 'probing', next_probe_at = now() where endpoint_id = :id`,
    { id: failing.id },
  );
  const { body } = await operator.get('/portal/operator/health');
  expect(await markupProblems(body)).toEqual([]);
  expect(body).toMatch(tile(1));
  expect(body.indexOf('down.example')).toBeGreaterThan(0);
  expect(body.indexOf('down.example')).toBeLessThan(body.indexOf('<h2>Dependencies</h2>'));
});

test('a hundred paused endpoints hide no failing one, and are not counted as failing', async () => {
  const api = await startTestApi();
  const operator = await addUser(api, { email: 'op@host.example', role: 'operator', tenantId: null });
  const page = async () => {
    const { body } = await operator.get('/portal/operator/health');
    expect(await markupProblems(body)).toEqual([]);
    const tile = /<dt>Failing endpoints<\/dt>(.*?)<\/div>/s.exec(body)?.[1]?.replaceAll(/<[^>]*>/g, '|');
    const at = (heading: string) => body.indexOf(`<h2>${heading}`);
    return { body, tile, isFirst: at('Failing, paused') < at('Dependencies') };
  };
  await query(
    api.database,
    `insert into webhook_endpoints (waba_id, url, secret_sealed)
     select :waba, 'https://paused.example/' || n, 'x' from generate_series(1, 100) as n`,
    { waba: WABA },
  );
  const since = `mode_changed_at = now() - interval '9 days'`;
  await query(
    api.database,
    `update endpoint_health set mode = 'paused', ${since}
    where endpoint_id in (select id from webhook_endpoints where url like 'https://paused%')`,
  );
  const paused = await page();
  expect(paused.tile).toMatch(/^\|0\|.*100 paused; all others accept deliveries/);
  expect(paused.isFirst).toBe(false);
  const open = await addEndpoint(api.database, WABA, 'https://fails.example/hook');
  await query(api.database, 'update endpoint_health set failing_since = now() where endpoint_id = :id', {
    id: open.id,
  });
  const { body, tile, isFirst } = await page();
  expect(tile).toMatch(/^\|1\|.*probing, failing or disabled; 100 paused/);
  expect(isFirst).toBe(true);
  expect(body.indexOf('fails.example')).toBeGreaterThan(0);
  expect(body.indexOf('fails.example')).toBeLessThan(body.indexOf('paused.example'));
  expect(body).toContain('The first 100 of 101 are listed.');
});

test('the health page begins with the parts of the installation that fail', async () => {
  // Temporal does not listen in this test.
  const downStore = openObjectStore({ ...testConfig().objectStore, url: 'http://127.0.0.1:1' });
  const api = await startTestApi(async () => ({ probeStore: downStore }));
  onTestFinished(() => downStore.close());
  const operator = await addUser(api, { email: 'op@host.example', role: 'operator', tenantId: null });
  const page = async () => {
    const { body } = await operator.get('/portal/operator/health');
    expect(await markupProblems(body)).toEqual([]);
    const box = /role="alert">(.*?)<\/div>/s.exec(body)?.[1]?.replaceAll(/<[^>]*>/g, '');
    const headings = [...body.matchAll(/<h2>(.*?)</g)].map(([, heading]) => heading);
    return { box, headings, isOnTop: body.indexOf('role="alert"') < body.indexOf('class="stats"') };
  };
  const noWorker = 'No worker is up: events are stored, but not delivered.';
  const down = 'Error: Temporal is down. Object store is down.';
  expect(await page()).toMatchObject({ box: `${down} ${noWorker}`, isOnTop: true });
  await reportWorker(api.database, 'host-1:1', { attempts: 0, withRun: 0 });
  await takeHousekeepingStep(api.database, 'retention', 1_000);
  await finishHousekeepingStep(api.database, 'retention', { error: 'full', nextMs: 1_000 });
  await query(api.database, `update wabas set numbers_problem = 'token refused' where waba_id = :waba`, {
    waba: WABA,
  });
  const { box, headings } = await page();
  expect(box).toBe(`${down} Housekeeping fails: retention. The phone numbers of 1 WABA cannot be updated.`);
  expect(headings.slice(1, 4)).toEqual([
    'Dependencies',
    'Housekeeping',
    'WABAs whose phone numbers are not up to date',
  ]);
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
  const setMode = `update endpoint_health set mode = 'probing', mode_reason = :reason, failing_since = now() where endpoint_id = :id`;
  await query(api.database, setMode, { reason: 'most attempts fail: 21 of the last 21', id });
  const { health, page } = await pages();
  const reason = 'most attempts fail: 21 of the last 21; last error: the endpoint returned 503';
  expect(health).toContain(reason);
  expect(health).toMatch(new RegExp(`>${id}: https://down.example/.*<td class="number"[^>]*>2 `, 's'));
  expect(page).toContain(`Reason: ${reason}`);
  expect(page).toContain('2 until a probe succeeds');
  expect(page).toMatch(/An endpoint is disabled after 5 days of failures: this one on \d{4}-\d\d-\d\d /);
  expect(page).toMatch(new RegExp(`In Temporal: <a [^>]*href="[^"]*/workflows/endpoint%2F${id}"`));
  const own = (await member.get(`/portal/w/${WABA}/endpoints/${id}`)).body;
  expect(own).toContain(`Reason: ${reason}`);
  expect(own).not.toContain('In Temporal');
  await query(api.database, setMode, { reason: 'most attempts fail: the endpoint returned 503', id });
  expect((await pages()).health).not.toContain('last error');
  await query(
    api.database,
    `update endpoint_health set mode = 'open', mode_reason = null where endpoint_id = :id`,
    {
      id,
    },
  );
  expect((await pages()).health).toMatch(/<td class=""[^>]*>the endpoint returned 503<\/td>/);
  await query(api.database, 'update endpoint_health set failing_since = null where endpoint_id = :id', {
    id,
  });
  const healthy = (await pages()).page;
  expect(healthy).not.toContain('In Temporal');
  expect(healthy).not.toContain('An endpoint is disabled after');
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
  expect(await tile()).toMatch(/33\u00a0%.*of 1,000 in 15 minutes/s);
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
  expect(await statusOf(question)).toBe('OK: 1 active.');
  await addEndpoint(api.database, WABA, 'https://up.example/hook');
  await query(api.database, 'update endpoint_health set failing_since = now() where endpoint_id = :id', {
    id,
  });
  expect(await statusOf(question)).toBe(
    `Attention: 1 active, 1 failing: endpoint ${id} (${shownUrl('https://down.example/hook')}).`,
  );
  const { body } = await operator.get(`/portal/operator/wabas/${WABA}`);
  expect(body).toContain('A failing endpoint: open it, read the last error');
  expect(body).not.toMatch(/Add one under Webhook Settings|A paused or disabled endpoint/);
});
