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
import { markupProblems } from '../markup-problems.ts';
import { addUser } from '../portal-browser.ts';

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
