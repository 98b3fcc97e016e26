import { expect, test } from 'vitest';
import { listAudit } from '../../../src/platform/audit/audit.ts';
import { addKey, startTestApi, WABA } from './api-harness.ts';
import { CHANGES } from './graph/changing-calls.ts';
import { startRecordingUpstream } from './graph/recording-upstream.ts';

const ENDPOINTS = '/api/external/webhook-endpoints';

test('every change by REST is in the audit log: which key, which request, from where, and no secret', async () => {
  const { app, database } = await startTestApi();
  const { id: keyId, authorization } = await addKey(database);
  const call = async (method: 'POST' | 'PATCH' | 'PUT' | 'DELETE', url: string, payload?: object) => {
    const headers = { authorization, 'x-request-id': 'req-of-a-tenant' };
    const answer = await app.inject({ method, url, headers, ...(payload && { payload }) });
    expect([url, answer.statusCode < 300, answer.body]).toEqual([url, true, answer.body]);
    return answer.body === '' ? {} : answer.json();
  };
  const url = 'https://shop.example/hooks/path-that-is-a-secret';
  const { id, secret } = await call('POST', ENDPOINTS, { url });
  await call('PATCH', `${ENDPOINTS}/${id}`, { customHeaders: { 'X-Token': 'header-secret' } });
  await call('POST', `${ENDPOINTS}/${id}/pause`, { reason: 'maintenance' });
  await call('POST', `${ENDPOINTS}/${id}/enable`, {});
  const rotated = await call('POST', `${ENDPOINTS}/${id}/rotate-secret`, {});
  await call('POST', `${ENDPOINTS}/${id}/test`, {});
  await call('DELETE', `${ENDPOINTS}/${id}`);
  const entries = (await listAudit({ database }, { wabaId: WABA })).reverse();
  expect(entries.map(({ action }) => action)).toEqual([
    'endpoint.created',
    'endpoint.updated',
    'endpoint.paused',
    'endpoint.enabled',
    'endpoint.secret_rotated',
    'endpoint.test_event',
    'endpoint.disabled',
    'endpoint.deleted',
  ]);
  for (const entry of entries) {
    expect(entry).toMatchObject({ actor: `API key ${keyId}`, target: `endpoint ${id}`, ip: '127.0.0.1' });
    expect(entry.requestId).toMatch(/./);
  }
  const text = JSON.stringify(entries);
  for (const hidden of ['path-that-is-a-secret', 'header-secret', secret, rotated.secret]) {
    expect(text).not.toContain(hidden);
  }
});

test('every change that the facade passes on leaves one entry: who, what, how it ended, nothing of its body', async () => {
  const upstream = await startRecordingUpstream();
  const { app, database } = await startTestApi(upstream.overrides);
  const { wabaId, number, template, flow, key } = await upstream.newAccount(database);
  const ids = { waba: wabaId, number, template, flow };
  expect(CHANGES.length).toBeGreaterThan(15);
  for (const { method, object, edge } of CHANGES) {
    const url = `/graph/v26.0/${ids[object]}${edge === '' ? '' : `/${edge}`}`;
    const headers = { authorization: `Bearer ${key}`, 'x-request-id': `${method} ${object} ${edge}` };
    const [before] = await listAudit({ database }, { wabaId });
    const answer = await app.inject({ method, url, headers, payload: { note: 'secret-of-the-body' } });
    expect([method, url, answer.statusCode]).toEqual([method, url, 200]);
    const [entry, next] = await listAudit({ database }, { wabaId });
    expect(next?.id).toBe(before?.id);
    expect(entry).toMatchObject({
      actor: expect.stringMatching(/^API key \d+$/),
      action: 'graph.changed',
      target: `${object === 'waba' ? 'WABA' : object} ${ids[object]}`,
      detail: { method, edge: edge === '' ? null : edge, status: 200 },
      requestId: expect.stringMatching(/./),
      ip: '127.0.0.1',
    });
    expect(JSON.stringify(entry)).not.toContain('secret-of-the-body');
  }
});
