import { expect, test } from 'vitest';
import { endpointAlertsOf, setOperationsUrl } from '../../../src/ops/alerts/operations-url.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { makeAddressGuard, shownUrl } from '../../../src/platform/http/outbound-url.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { ACCOUNT, bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint, testSecretBox } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, eventually, startReceiver } from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const WABA = '900000000000101';

test('a delivery that failed for good is told at the operations URL', async () => {
  const { database, url } = await seededDatabase();
  const [tenant, operations] = await Promise.all([startReceiver(), startReceiver()]);
  tenant.behave(answer(500));
  await addEndpoint(database, WABA, `${tenant.url}/hook`);
  await database.raw(`update webhook_endpoints set retry_schedule_seconds = '{1,1}'`);
  const guard = makeAddressGuard({ allowCidrs: ['127.0.0.0/8'] });
  const urlRules = { allowHttp: true, guard, resolve: async () => [] };
  const tools = { database, secretBox: testSecretBox, urlRules, actor: SYSTEM };
  await setOperationsUrl(tools, WABA, `${operations.url}/alerts`);
  const worker = startWorkerProcess(testSettings(url));
  try {
    await worker.ready();
    await takeIn(database, bodyOf(ACCOUNT, [textMessage('wamid.LOST', 'hello')]));
    await eventually('told', () => operations.received.length > 0);
    const alert = JSON.parse(operations.received[0]?.body.toString() ?? '');
    expect(alert).toMatchObject({
      alert: 'endpoint.deliveries_failed',
      endpoint: { url: shownUrl(`${tenant.url}/hook`), mode: 'open' },
      details: { failed: 1, since: expect.any(String) },
    });
    expect(await query(database, 'select state, attempts from deliveries')).toEqual([
      { state: 'failed', attempts: 3 },
    ]);
    await eventually(
      'delivered',
      async () => (await endpointAlertsOf(tools, WABA))[0]?.state === 'delivered',
    );
    expect((await endpointAlertsOf(tools, WABA)).map((one) => one.alert)).toEqual([
      'endpoint.deliveries_failed',
    ]);
  } finally {
    await worker.stop();
    await Promise.all([tenant.close(), operations.close()]);
  }
});
