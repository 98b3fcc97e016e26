import { expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { NUMBER, OTHER_NUMBER, startTestApi, WABA } from '../../api/api-harness.ts';
import { addUser } from '../portal-browser.ts';

test('an operator gives a number a pace of its own, and only a number of the WABA', async () => {
  const api = await startTestApi();
  const operator = await addUser(api, { email: 'op@host.example', role: 'operator', tenantId: null });
  const page = `/portal/operator/wabas/${WABA}`;
  const paceOf = async () =>
    await query<{ id: string; pace: number }>(
      api.database,
      `select phone_number_id as id, messages_per_second as pace from phone_numbers
        where messages_per_second is not null`,
    );
  const set = async (phoneNumberId: string, messagesPerSecond: string) => {
    await operator.get(page);
    return await operator.post(`${page}/pace`, { phoneNumberId, messagesPerSecond });
  };
  expect((await set(NUMBER, '20')).headers.location).toBe(`${page}?done=pace`);
  expect(await paceOf()).toEqual([{ id: NUMBER, pace: 20 }]);
  expect((await operator.get(page)).body).toContain(`(${NUMBER}): 20</option>`);
  for (const wrong of ['0', '1001', '-1', 'x']) {
    expect((await set(NUMBER, wrong)).headers.location).toBe(`${page}?done=no-pace`);
  }
  expect((await set(OTHER_NUMBER, '5')).statusCode).toBe(404);
  expect(await paceOf()).toEqual([{ id: NUMBER, pace: 20 }]);
  await set(NUMBER, '');
  expect(await paceOf()).toEqual([]);
  const [entry] = await query<{ action: string }>(
    api.database,
    'select action from audit_log order by id desc limit 1',
  );
  expect(entry?.action).toBe('phone_number.pace_set');
});

test('an operator chooses where the marketing templates of a number go, and only of a number of the WABA', async () => {
  const api = await startTestApi();
  const operator = await addUser(api, { email: 'op@host.example', role: 'operator', tenantId: null });
  const page = `/portal/operator/wabas/${WABA}`;
  const routes = async () =>
    await query<{ id: string; route: string }>(
      api.database,
      `select phone_number_id as id, marketing_route as route from phone_numbers where marketing_route <> 'auto'`,
    );
  const set = async (phoneNumberId: string, route: string) => {
    await operator.get(page);
    return await operator.post(`${page}/marketing`, { phoneNumberId, route });
  };
  expect((await operator.get(page)).body).toContain(`(${NUMBER}): auto</option>`);
  expect((await set(NUMBER, 'never')).headers.location).toBe(`${page}?done=marketing`);
  expect(await routes()).toEqual([{ id: NUMBER, route: 'never' }]);
  expect((await operator.get(page)).body).toContain(`(${NUMBER}): never</option>`);
  expect((await set(NUMBER, 'sometimes')).headers.location).toBe(`${page}?done=no-marketing`);
  expect((await set(OTHER_NUMBER, 'never')).statusCode).toBe(404);
  expect(await routes()).toEqual([{ id: NUMBER, route: 'never' }]);
  const [entry] = await query<{ action: string }>(
    api.database,
    'select action from audit_log order by id desc limit 1',
  );
  expect(entry?.action).toBe('phone_number.marketing_route_set');
});
