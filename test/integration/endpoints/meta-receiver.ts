import { onTestFinished } from 'vitest';
import { openEndpoint } from '../../../src/engine/deliveries/attempt/endpoint-cache.ts';
import { sendDelivery } from '../../../src/engine/deliveries/attempt/send-delivery.ts';
import { loadEndpointSettings } from '../../../src/engine/endpoint/endpoint-settings.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { makeHttpSender } from '../../../src/platform/sender/http-sender.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { type Behaviour, startReceiver } from '../../support/webhook-receiver.ts';

const RULES = { allowHttp: true, guard: makeAddressGuard({ allowCidrs: ['127.0.0.0/8'] }) };

/** As software behind a Meta app responds to the verification of its URL. */
export const verifying =
  (token: string): Behaviour =>
  ({ path }, response) => {
    const { searchParams } = new URL(path, 'http://receiver.example');
    const isRight =
      searchParams.get('hub.mode') === 'subscribe' && searchParams.get('hub.verify_token') === token;
    response.writeHead(isRight ? 200 : 403).end(isRight ? searchParams.get('hub.challenge') : 'no');
    return isRight ? 200 : 403;
  };

/** A server of a tenant, and the attempts that are made for its endpoint. */
export async function startReceiving(behaviour?: Behaviour) {
  const { database } = await seededDatabase();
  const receiver = await startReceiver(behaviour);
  const sender = makeHttpSender({ ...RULES, connectTimeoutMs: 5_000, totalTimeoutMs: 5_000 });
  onTestFinished(async () => {
    await sender.close();
    await receiver.close();
  });
  const urlRules = { ...RULES, resolve: async () => ['127.0.0.1'] };
  const tools = { database, secretBox: testSecretBox, urlRules, maxTimeoutMs: 15_000, actor: SYSTEM };
  /** Makes an attempt of each delivery that is queued for the endpoint. */
  const attempt = async (id: string, attempts = 0) => {
    const [settings] = await loadEndpointSettings(database, [id]);
    if (settings === undefined) throw new Error('the endpoint is gone');
    const defaults = { timeoutMs: 5_000, retryScheduleMs: [], workflows: 'auto' as const };
    const endpoint = openEndpoint(settings, { secretBox: testSecretBox, defaults });
    const queued = await query<{ eventUuid: string; eventType: string; eventId: string; body: Buffer }>(
      database,
      `select ev.id as "eventUuid", ev.event_type as "eventType", ev.event_id as "eventId", ev.body
         from deliveries d join events ev on ev.day = d.event_day and ev.id = d.event_uuid
        where d.endpoint_id = :id order by d.id`,
      { id },
    );
    for (const delivery of queued) {
      const parts = { deliveryId: delivery.eventUuid, attempts, replay: attempts > 0, sequence: '1' };
      await sendDelivery(sender, endpoint, { ...delivery, ...parts } as never, 5_000);
    }
    return receiver.received.splice(0);
  };
  return { database, tools, receiver, attempt };
}
