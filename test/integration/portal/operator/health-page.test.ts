import { expect, test } from 'vitest';
import {
  finishHousekeepingStep,
  takeHousekeepingStep,
} from '../../../../src/platform/postgres/worker-processes.ts';
import { startTestApi } from '../../api/api-harness.ts';
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
});
