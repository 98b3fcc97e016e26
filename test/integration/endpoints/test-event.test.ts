import { describe, expect, inject, test } from 'vitest';
import { makeDeliveryStart } from '../../../src/engine/deliveries/delivery-starter.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { openTemporalConnection } from '../../../src/platform/temporal/client-connection.ts';
import { testSettings } from '../../support/test-settings.ts';
import { startTestApi } from '../api/api-harness.ts';
import { externalClient } from '../api/external-client.ts';

const ENDPOINTS = '/api/external/webhook-endpoints';
/** An address, so that no name has to be resolved. */
const URL = 'https://93.184.216.34/hook';

describe('the test event', () => {
  test('is pending with 202 while Temporal is away, and sent to this endpoint when a worker is there', async () => {
    const away = loadConfig(
      testSettings(inject('infrastructure').postgresUrl, { HELIOGRAPH_TEMPORAL_ADDRESS: '127.0.0.1:9' }),
    );
    const temporal = openTemporalConnection(away);
    const startDelivery = makeDeliveryStart(away, temporal);
    const api = await startTestApi(async () => ({ startDelivery }));
    const call = await externalClient(api);
    const { id } = (await call('POST', ENDPOINTS, { url: URL })).json();
    const response = await call('POST', `${ENDPOINTS}/${id}/test`);
    await temporal.close();
    expect([response.statusCode, response.json()]).toEqual([
      202,
      {
        endpointId: id,
        id: expect.stringMatching(/^evt_[0-9a-f]{32}$/),
        eventId: expect.stringMatching(/^test_\d+$/),
        deliveryId: expect.stringMatching(/^dlv_/),
        state: 'pending',
        statusCode: null,
        error: null,
        durationMs: null,
      },
    ]);
    const event = await call('GET', `/api/external/events/${response.json().id}`);
    expect(event.json()).toMatchObject({
      eventType: 'test',
      deliveries: [{ endpointId: id, state: 'pending' }],
    });
    expect((await call('POST', `${ENDPOINTS}/${id}/test`, { url: URL })).json().error.param).toBe('url');
  });

  test('is refused beyond 30 a minute of an endpoint, with the time to wait', async () => {
    const startDelivery = () => Promise.reject(new Error('Temporal is away'));
    const call = await externalClient(await startTestApi(async () => ({ startDelivery })));
    const { id } = (await call('POST', ENDPOINTS, { url: URL })).json();
    const all = await Promise.all(Array.from({ length: 32 }, () => call('POST', `${ENDPOINTS}/${id}/test`)));
    expect(all.filter(({ statusCode }) => statusCode === 202)).toHaveLength(30);
    const refused = all.filter(({ statusCode }) => statusCode === 429);
    expect(refused).toHaveLength(2);
    for (const { headers } of refused) {
      expect(Number(headers['retry-after'])).toBeGreaterThan(0);
      expect(Number(headers['retry-after'])).toBeLessThanOrEqual(60);
    }
    expect(refused[0]?.json().error.code).toBe('rate_limit_exceeded');
  });
});
