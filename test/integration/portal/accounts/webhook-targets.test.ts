import { expect, test } from 'vitest';
import { webhookTargets } from '../../../../src/features/endpoints/webhook-targets.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { startTestApi, WABA } from '../../api/api-harness.ts';
import { addUser } from '../portal-browser.ts';

test('an operator sets where the webhooks of a WABA may go; what means nothing is said at the field and not saved', async () => {
  const api = await startTestApi();
  const operator = await addUser(api, { email: 'op@host.example', role: 'operator', tenantId: null });
  const page = `/portal/operator/wabas/${WABA}`;
  const set = async (allow: string, deny: string) => {
    await operator.get(page);
    return await operator.post(`${page}/targets`, { allow, deny });
  };
  const saved = await set('hooks.shop.example\r\n10.1.0.0/16:8443\r\n', '10.1.9.0/24');
  expect(saved.headers.location).toBe(`${page}?done=targets`);
  const lists = { allow: ['hooks.shop.example', '10.1.0.0/16:8443'], deny: ['10.1.9.0/24'] };
  expect(await webhookTargets(api.database, WABA)).toEqual(lists);
  expect((await operator.get(page)).body).toContain('hooks.shop.example\n10.1.0.0/16:8443</textarea>');

  const wrong = await set('https://shop.example/hook', '');
  expect(wrong.statusCode).toBe(422);
  expect(wrong.body).toContain('https://shop.example/hook</textarea>');
  expect(wrong.body).toMatch(/class="problem" id="allow-problem">[^<]*shop\.example/);
  expect(await webhookTargets(api.database, WABA)).toEqual(lists);

  await set('', '');
  expect(await webhookTargets(api.database, WABA)).toEqual({ allow: [], deny: [] });
  const entries = await query<{ action: string }>(
    api.database,
    `select action from audit_log where action = 'webhook_targets.changed'`,
  );
  expect(entries).toHaveLength(2);
});
