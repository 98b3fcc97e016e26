import { describe, expect, test } from 'vitest';
import { execute } from '../../../src/platform/postgres/sql.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { addKey, OTHER_WABA, startTestApi, WABA } from '../api/api-harness.ts';
import { client, publishOne } from '../deliveries/event-fixtures.ts';

describe('replays', () => {
  test('one event goes again to all its endpoints or a chosen one, once it is settled', async () => {
    const api = await startTestApi();
    const { database } = api;
    const { call } = await client(api);
    const one = await addEndpoint(database, WABA, 'https://one.example/hook');
    const two = await addEndpoint(database, WABA, 'https://two.example/hook');
    const id = await publishOne(database, 'e');
    const url = `/api/external/events/${id}/replay`;
    expect((await call('POST', url)).json().error).toMatchObject({ code: 'nothing_to_replay' });
    await execute(database, `update deliveries set state = 'failed', finished_at = now()`);
    await execute(database, 'delete from delivery_queue');
    const chosen = await call('POST', url, { endpointId: one.id });
    expect([chosen.statusCode, chosen.json().total]).toEqual([201, 1]);
    expect(chosen.headers.location).toBe(`/api/external/replays/${chosen.json().id}`);
    expect((await call('POST', url)).json()).toMatchObject({
      total: 2,
      state: 'running',
      requestedBy: expect.stringMatching(/^API key \d+$/),
    });
    const unknown = await call('POST', url, { endpointId: '999999' });
    expect([unknown.statusCode, unknown.json().error]).toMatchObject([
      422,
      { code: 'unknown_endpoint', param: 'endpointId' },
    ]);
    expect((await call('POST', url, { endpoint: two.id })).json().error).toMatchObject({
      code: 'invalid_parameter',
      param: 'endpoint',
    });
  });

  test('one event goes to endpoints that are newer than it or take its type only now, and to no other', async () => {
    const api = await startTestApi();
    const { database } = api;
    const { call } = await client(api);
    const id = await publishOne(database, 'e');
    const url = `/api/external/events/${id}/replay`;
    const replay = async (body?: object) => (await call('POST', url, body)).json();
    expect((await replay()).error.message).toBe('No endpoint has had this event or takes such events now.');
    const newer = await addEndpoint(database, WABA, 'https://newer.example/hook');
    const statuses = await addEndpoint(database, WABA, 'https://statuses.example/hook', ['status']);
    expect((await replay({ endpointId: statuses.id })).error).toMatchObject({ code: 'nothing_to_replay' });
    expect(await replay({ endpointId: newer.id })).toMatchObject({
      total: 1,
      selection: { deliveryIds: [], eventIds: [id], endpointId: newer.id },
    });
    expect((await replay()).total).toBe(1);
    await execute(database, `update webhook_endpoints set event_types = '{status,message}' where id = :id`, {
      id: statuses.id,
    });
    expect((await replay()).total).toBe(2);
    const other = await addEndpoint(database, OTHER_WABA, 'https://other.example/hook');
    expect((await replay({ endpointId: other.id })).error).toMatchObject({ code: 'unknown_endpoint' });
  });

  test('many are counted without being sent, started, listed, paused, resumed and cancelled', async () => {
    const api = await startTestApi();
    const { database } = api;
    const { call } = await client(api);
    const { id: endpointId } = await addEndpoint(database, WABA, 'https://one.example/hook');
    for (let index = 0; index < 5; index += 1) await publishOne(database, `e${index}`);
    await execute(database, `update deliveries set state = 'failed', finished_at = now()`);
    await execute(database, 'delete from delivery_queue');
    const replays = '/api/external/replays';
    const count = await call('POST', replays, { endpointId, states: ['failed'], dryRun: true });
    expect([count.statusCode, count.json()]).toMatchObject([
      200,
      { dryRun: true, deliveries: 5, byType: { message: 5 }, byEndpoint: { [endpointId]: 5 } },
    ]);
    expect((await call('GET', replays)).json().data).toEqual([]);
    const ids: string[] = [];
    for (let index = 0; index < 3; index += 1)
      ids.push((await call('POST', replays, { states: ['failed'] })).json().id);
    const listed = (await call('GET', `${replays}?limit=2`)).json();
    expect(listed.data.map((one: { id: string }) => one.id)).toEqual([ids[2], ids[1]]);
    expect((await call('GET', `${replays}?cursor=${listed.nextCursor}`)).json().data).toMatchObject([
      { id: ids[0] },
    ]);
    const one = `${replays}/${ids[0]}`;
    expect((await call('POST', `${one}/pause`)).json().state).toBe('paused');
    expect((await call('POST', `${one}/resume`)).json().state).toBe('running');
    expect((await call('POST', `${one}/cancel`)).json()).toMatchObject({
      state: 'cancelled',
      outcomes: { pending: 0 },
    });
    expect((await call('POST', `${one}/resume`)).json().error).toMatchObject({ code: 'replay_finished' });
    expect((await call('GET', one)).json()).toMatchObject({
      state: 'cancelled',
      finishedAt: expect.any(String),
    });
    const other = await client(api, OTHER_WABA);
    const missing = (await other.call('GET', `${replays}/123456`)).json().error;
    expect(missing).toMatchObject({ code: 'not_found' });
    for (const id of [ids[1] ?? '', '9'.repeat(18), '9'.repeat(19), 'x', '0']) {
      const expected = {
        ...missing,
        message: missing.message.replace('123456', id),
        requestId: expect.any(String),
      };
      const answers = [
        await other.call('GET', `${replays}/${id}`),
        await other.call('POST', `${replays}/${id}/cancel`),
      ];
      for (const answer of answers)
        expect([id, answer.statusCode, answer.json().error]).toEqual([id, 404, expected]);
    }
  });

  test('a selection that is none is refused with the member that is wrong', async () => {
    const api = await startTestApi();
    const { call } = await client(api);
    const foreign = await addEndpoint(api.database, OTHER_WABA, 'https://theirs.example/hook');
    for (const [payload, status, code, param] of [
      [{}, 400, 'invalid_parameter', null],
      [{ dryRun: true }, 400, 'invalid_parameter', null],
      [{ selection: {} }, 400, 'invalid_parameter', 'selection'],
      [{ deliveryIds: [] }, 400, 'invalid_parameter', 'deliveryIds'],
      [{ deliveryIds: ['dlv_x'] }, 400, 'invalid_parameter', 'deliveryIds'],
      [{ deliveryIds: ['dlv_01900000000070008000000000000000'] }, 422, 'unknown_delivery', 'deliveryIds'],
      [{ endpointId: foreign.id }, 422, 'unknown_endpoint', 'endpointId'],
      [{ endpointId: '999999' }, 422, 'unknown_endpoint', 'endpointId'],
      [{ endpointId: 3 }, 400, 'invalid_parameter', 'endpointId'],
      [{ from: 'x' }, 400, 'invalid_parameter', 'from'],
      [{ states: ['pending'] }, 400, 'invalid_parameter', 'states/0'],
      [{ states: ['failed'] }, 409, 'nothing_to_replay', null],
    ] as const) {
      const response = await call('POST', '/api/external/replays', payload);
      const { error } = response.json();
      expect([payload, response.statusCode, error.code, error.param]).toEqual([payload, status, code, param]);
    }
    const broken = await api.app.inject({
      method: 'POST',
      url: '/api/external/replays',
      payload: '{"a":',
      headers: {
        authorization: (await addKey(api.database)).authorization,
        'content-type': 'application/json',
      },
    });
    expect([broken.statusCode, broken.json().error.code]).toEqual([400, 'invalid_json']);
  });
});
