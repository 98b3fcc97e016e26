import { openEndpoint } from '../../../src/engine/deliveries/attempt/endpoint-cache.ts';
import { sendDelivery } from '../../../src/engine/deliveries/attempt/send-delivery.ts';
import { loadEndpointSettings } from '../../../src/engine/endpoint/endpoint-settings.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import type { makeHttpSender } from '../../../src/platform/sender/http-sender.ts';
import { testSecretBox } from '../../support/test-accounts.ts';

/** Sends an event to an endpoint as attempts do; returns the status code, or the class of the error. */
export async function attemptAt(
  { database, sender }: { database: Database; sender: ReturnType<typeof makeHttpSender> },
  id: string,
  body = '{}',
): Promise<number | string> {
  const [settings] = await loadEndpointSettings(database, [id]);
  if (settings === undefined) throw new Error('the endpoint is gone');
  const defaults = { timeoutMs: 5_000, retryScheduleMs: [], workflows: 'auto' as const };
  const uuid = '019aa2b3-7c4d-7e8f-9a0b-1c2d3e4f5061';
  const delivery = {
    deliveryId: uuid,
    eventUuid: uuid,
    attempts: 0,
    replay: false,
    sequence: '1',
    eventType: 'test',
    eventId: 'test_1',
    body: Buffer.from(body),
  };
  const endpoint = openEndpoint(settings, { secretBox: testSecretBox, defaults });
  const { result } = await sendDelivery(sender, endpoint, delivery as never, 5_000);
  return result.outcome === 'response' ? result.statusCode : result.errorClass;
}
