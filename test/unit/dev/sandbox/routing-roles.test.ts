import { expect, test } from 'vitest';
import { graph, type JsonResponse, postJson, startSandbox } from './sandbox-harness.ts';

const NUMBER = '800000000000111';

async function world() {
  const { url } = await startSandbox();
  const at = (edge: string) => `${url}/v26.0/${NUMBER}/${edge}`;
  const codeOf = async (response: JsonResponse) => (await response.json()).error?.code ?? response.status;
  return {
    share: (roles: string[], isStandby = false) => postJson(`${url}/sandbox/routing`, { roles, isStandby }),
    unshare: () => fetch(`${url}/sandbox/routing`, { method: 'DELETE' }),
    control: async (action: string) =>
      await codeOf(await postJson(at('thread_control'), { to: '12025550143', action })),
    call: async () => await codeOf(await postJson(at('calls'), { to: '12025550143', action: 'connect' })),
    roles: async () => await (await graph(at('routing_roles'))).json(),
  };
}

test('a number that nobody else answers for has no roles, and refuses nothing', async () => {
  const { control, call, roles } = await world();
  expect(await roles()).toEqual({ roles: [], is_standby: false });
  expect([await control('take'), await control('pass'), await control('release'), await call()]).toEqual([
    200, 200, 200, 200,
  ]);
});

test('of a shared number only the escalation partner takes conversations, and only the Call primary calls', async () => {
  const { share, unshare, control, call, roles } = await world();
  await share(['customer_service'], true);
  expect(await roles()).toEqual({ roles: ['customer_service'], is_standby: true });
  expect([await control('take'), await call()]).toEqual([2_494_191, 138_038]);
  expect([await control('pass'), await control('release'), await control('lend')]).toEqual([200, 200, 100]);
  await share(['escalation', 'calls']);
  expect([await control('take'), await call()]).toEqual([200, 200]);
  expect((await share(['owner'])).status).toBe(400);
  await unshare();
  expect(await roles()).toEqual({ roles: [], is_standby: false });
});
