import type { LightMyRequestResponse } from 'fastify';
import { describe, expect, test } from 'vitest';
import { hashApiKey } from '../../../../src/features/keys/api-key.ts';
import { findApiKey } from '../../../../src/features/keys/api-key-store.ts';
import { createKey, listKeys } from '../../../../src/features/keys/api-keys.ts';
import { keyRequestOf } from '../../../../src/features/keys/key-requests.ts';
import { listAudit, OPERATOR_COMMAND, recordAudit } from '../../../../src/platform/audit/audit.ts';
import { OTHER_WABA, startTestApi, WABA } from '../../api/api-harness.ts';
import { markupProblems } from '../markup-problems.ts';
import { addUser, tenantOf } from '../portal-browser.ts';

const KEYS = `/portal/w/${WABA}/keys`;
const APPROVALS = '/portal/operator/approvals';
const HOSTILE = `<img src=x onerror=alert(1)>"'&</textarea>`;
const KEY = /ck_[0-9a-f]{64}/;

async function start() {
  const { app, database } = await startTestApi();
  const tenantId = await tenantOf(database, WABA);
  const sign = (email: string, role: string) =>
    addUser({ app, database }, { email, role, tenantId: role === 'operator' ? null : tenantId });
  const [admin, member, operator] = [
    await sign('ann@shop.example', 'admin'),
    await sign('mo@shop.example', 'member'),
    await sign('ops@heliograph.example', 'operator'),
  ];
  const ask = async (fields: Record<string, string> = {}) => {
    await admin.get(`${KEYS}/new`);
    const form = { purpose: 'order system', scopes: 'read', validDays: '90', ...fields };
    return await admin.post(`${KEYS}/requests`, form);
  };
  const decide = async (id: string, decision: string, note = '') => {
    await operator.get(`${APPROVALS}/${id}`);
    return await operator.post(`${APPROVALS}/${id}`, { decision, note });
  };
  return { app, database, tenantId, admin, member, operator, ask, decide, sign };
}

async function expectValid(answer: LightMyRequestResponse): Promise<void> {
  expect(await markupProblems(answer.body)).toEqual([]);
}

describe('asking for a key', () => {
  test('request, approval, reveal: the key is on one page, once; a second try says when and by whom', async () => {
    const { admin, operator, ask, decide, database } = await start();
    const asked = await ask();
    expect([asked.statusCode, asked.headers.location]).toEqual([303, `${KEYS}?done=asked`]);
    expect((await admin.get(KEYS)).body).toContain('pending approval');
    const queue = await operator.get(APPROVALS);
    expect(queue.body).toContain('ann@shop.example');
    const decided = await decide('1', 'approve', 'as agreed');
    expect([decided.statusCode, decided.headers.location]).toEqual([303, `${APPROVALS}?done=approved`]);
    const page = await admin.get(`${KEYS}/requests/1`);
    expect(page.body).toContain('as agreed');
    const shown = await admin.post(`${KEYS}/requests/1/reveal`);
    expect(shown.statusCode).toBe(200);
    expect(shown.headers['cache-control']).toBe('no-store');
    const [key = ''] = KEY.exec(shown.body) ?? [];
    expect(await findApiKey(database, hashApiKey(key))).toMatchObject({ wabaId: WABA, scopes: ['read'] });
    const again = await admin.post(`${KEYS}/requests/1/reveal`);
    expect(again.statusCode).toBe(409);
    expect(again.body).toMatch(/was revealed 20\d\d-.* by ann@shop\.example/);
    for (const path of [KEYS, `${KEYS}/requests/1`, `/portal/w/${WABA}/audit`]) {
      expect((await admin.get(path)).body).not.toContain(key.slice(11));
    }
    expect(again.body).not.toMatch(KEY);
    for (const answer of [queue, page, shown, again]) await expectValid(answer);
  });

  test('what waits is counted in the navigation, decided in its row, and listed once', async () => {
    const { admin, operator, ask } = await start();
    await ask();
    const queue = (await operator.get(APPROVALS)).body;
    expect(queue).toContain('<span class="unseen">, pending: </span>1</span>');
    expect(queue.match(/order system/g)).toHaveLength(1);
    expect(queue).toContain('value="approve">Approve</button>');
    expect((await admin.get(KEYS)).body).not.toContain(', pending: ');
    const decided = await operator.post(`${APPROVALS}/1`, { decision: 'approve', note: '' });
    expect(decided.headers.location).toBe(`${APPROVALS}?done=approved`);
    const after = (await operator.get(APPROVALS)).body;
    expect(after).not.toContain(', pending: ');
    expect(after).toContain('Decided and ended');
    expect(after.match(/order system/g)).toHaveLength(1);
  });

  test('what the key may send is asked for, changed by whoever approves, and shown with the key', async () => {
    const { admin, operator, ask, database } = await start();
    const bad = await ask({ scopes: 'send', maxMessagesPerDay: '0' });
    expect([bad.statusCode, bad.body]).toEqual([422, expect.stringContaining('whole number from 1 to')]);
    expect((await ask({ scopes: 'send', recipients: 'everyone' })).statusCode).toBe(422);
    const asked = await ask({ scopes: 'send', maxMessagesPerDay: '900', recipients: 'open_conversations' });
    expect(asked.headers.location).toBe(`${KEYS}?done=asked`);
    const page = await operator.get(`${APPROVALS}/1`);
    expect(page.body).toMatch(/name="maxMessagesPerDay"[^>]*value="900"/);
    expect(page.body).toContain('at most 900 per UTC day');
    const form = { decision: 'approve', note: '', recipients: 'any' };
    const refused = await operator.post(`${APPROVALS}/1`, { ...form, maxMessagesPerDay: 'many' });
    expect([refused.statusCode, refused.body]).toEqual([422, expect.stringContaining('whole number from 1')]);
    await operator.post(`${APPROVALS}/1`, { ...form, maxMessagesPerDay: '50' });
    const [key = ''] = KEY.exec((await admin.post(`${KEYS}/requests/1/reveal`)).body) ?? [];
    const limits = { maxMessagesPerDay: 50, recipients: 'any' };
    expect(await findApiKey(database, hashApiKey(key))).toMatchObject(limits);
    const list = await admin.get(KEYS);
    expect(list.body).toContain('messages: at most 50 per UTC day; recipients: any');
    const audit = (await listAudit({ database }, { wabaId: WABA })).map(({ action, detail }) => [
      action,
      detail,
    ]);
    expect(audit).toContainEqual(['key_request.approved', { note: null, ...limits }]);
    expect(audit).toContainEqual(['key.created', expect.objectContaining(limits)]);
    const replacement = await admin.get(`${KEYS}/new?replace=1`);
    expect(replacement.body).toMatch(/name="maxMessagesPerDay"[^>]*value="50"/);
    for (const answer of [bad, page, refused, list, replacement]) await expectValid(answer);
  });

  test('an approval in the row of the list grants the limits that were asked for', async () => {
    const { operator, ask, database } = await start();
    await ask({ scopes: 'send', maxMessagesPerDay: '7', recipients: 'open_conversations' });
    expect((await operator.get(APPROVALS)).body).toContain('messages: at most 7 per UTC day');
    await operator.post(`${APPROVALS}/1`, { decision: 'approve', note: '' });
    const limits = { state: 'approved', maxMessagesPerDay: 7, recipients: 'open_conversations' };
    expect(await keyRequestOf({ database }, null, '1')).toMatchObject(limits);
  });

  test('whoever approves does not see the key of a tenant, only one that he asked for himself', async () => {
    const { operator, ask, decide, database } = await start();
    await ask();
    await decide('1', 'approve');
    expect((await operator.get(`${KEYS}/requests/1`)).body).not.toContain('Show the key once');
    expect((await operator.post(`${KEYS}/requests/1/reveal`)).statusCode).toBe(403);
    expect(await listKeys({ database }, WABA)).toEqual([]);
    await operator.get(`${KEYS}/new`);
    await operator.post(`${KEYS}/requests`, { purpose: 'support', scopes: 'read', validDays: '90' });
    await decide('2', 'approve');
    expect((await operator.get(`${KEYS}/requests/2`)).body).toContain('Show the key once');
    expect((await operator.post(`${KEYS}/requests/2/reveal`)).body).toMatch(KEY);
  });

  test('every request can be reached, page by page, and what cannot be one is not found', async () => {
    const { admin, operator, ask, database } = await start();
    await ask({ purpose: 'the first' });
    await database.raw(`insert into api_key_requests
      (tenant_id, waba_id, requester_id, requester, purpose, scopes, state, decide_until)
      select tenant_id, waba_id, requester_id, requester, 'more', scopes, 'withdrawn', decide_until
        from api_key_requests, generate_series(1, 30)`);
    const page = await admin.get(KEYS);
    expect(page.body).not.toContain('the first');
    const next = /href="([^"]+)" rel="next"/.exec(page.body)?.[1]?.replaceAll('&amp;', '&') ?? '';
    const second = await admin.get(next);
    expect(second.body).toContain('the first');
    await expectValid(second);
    for (const id of ['0', 'x', '99999999999999999999', '%00']) {
      expect((await admin.get(`${KEYS}/requests/${id}`)).statusCode).toBe(404);
      expect((await admin.post(`${KEYS}/${id}/revoke`)).statusCode).toBe(404);
      expect((await operator.get(`${APPROVALS}/${id}`)).statusCode).toBe(404);
    }
  });

  test('looking at a page never reveals: only the form does', async () => {
    const { admin, ask, decide, database } = await start();
    await ask();
    await decide('1', 'approve');
    const looked = await admin.get(`${KEYS}/requests/1/reveal`);
    expect(looked.statusCode).toBe(404);
    const forged = await admin.post(`${KEYS}/requests/1/reveal`, { _csrf: 'made up' });
    expect(forged.statusCode).toBe(403);
    expect(await listKeys({ database }, WABA)).toEqual([]);
  });

  test('forms with a mistake come back with what was typed and say what is wrong', async () => {
    const { admin, ask } = await start();
    const mistakes: [Record<string, string>, string][] = [
      [{ purpose: '' }, 'must not be empty'],
      [{ scopes: 'everything' }, 'A scope must be one of'],
      [{ validDays: 'soon' }, 'must be a whole number'],
      [{ validDays: '1e9' }, 'must be a whole number'],
      [{ replacesKeyId: '77' }, 'There is no API key 77'],
    ];
    for (const [fields, message] of mistakes) {
      const answer = await ask({ purpose: 'kept text', ...fields });
      expect([fields, answer.statusCode]).toEqual([fields, 422]);
      expect(answer.body).toContain(message);
      if (!('purpose' in fields)) expect(answer.body, message).toContain('value="kept text"');
      expect((await admin.get(KEYS)).body).not.toContain('pending approval');
      await expectValid(answer);
    }
  });

  test('hostile text is shown as text on every page', async () => {
    const { admin, operator, ask, decide } = await start();
    await ask({ purpose: HOSTILE });
    await decide('1', 'deny', HOSTILE);
    const pages = [
      await admin.get(KEYS),
      await admin.get(`${KEYS}/requests/1`),
      await operator.get(APPROVALS),
      await operator.get(`${APPROVALS}/1`),
      await admin.get(`/portal/w/${WABA}/audit`),
      await operator.get(`/portal/operator/audit?actor=${encodeURIComponent(HOSTILE)}`),
    ];
    for (const page of pages) {
      expect(page.statusCode).toBe(200);
      expect(page.body).not.toContain('<img src=x');
      expect(page.body).toContain('&lt;img src=x');
      await expectValid(page);
    }
  });

  test('the requester withdraws; the queue is empty then', async () => {
    const { admin, operator, ask } = await start();
    await ask();
    await admin.get(`${KEYS}/requests/1`);
    const answer = await admin.post(`${KEYS}/requests/1/withdraw`);
    expect(answer.headers.location).toBe(`${KEYS}?done=withdrawn`);
    expect((await operator.get(APPROVALS)).body).toContain('No pending requests');
    const again = await admin.post(`${KEYS}/requests/1/withdraw`);
    expect(again.statusCode).toBe(409);
  });
});

describe('keys', () => {
  test('are listed by their first and last characters, and revoked on a page that asks first', async () => {
    const { admin, database } = await start();
    const tools = { database, actor: OPERATOR_COMMAND };
    const { id, apiKey } = await createKey(tools, WABA, { name: HOSTILE, expiresAt: null });
    const list = await admin.get(KEYS);
    expect(list.body).toContain(`${apiKey.slice(0, 11)}…${apiKey.slice(-4)}`);
    expect(list.body).not.toContain(apiKey);
    const question = await admin.get(`${KEYS}/${id}/revoke`);
    await expectValid(question);
    await expectValid(await admin.get(`${KEYS}/new?replace=${id}`));
    const answer = await admin.post(`${KEYS}/${id}/revoke`);
    expect(answer.headers.location).toBe(`${KEYS}?done=revoked`);
    expect(await findApiKey(database, hashApiKey(apiKey))).toMatchObject({ isRevoked: true });
    await expectValid(await admin.get(`${KEYS}?done=revoked`));
  });

  test('of another tenant cannot be seen, replaced or revoked', async () => {
    const { admin, ask, database } = await start();
    const tools = { database, actor: OPERATOR_COMMAND };
    const { id } = await createKey(tools, OTHER_WABA, { name: 'theirs', expiresAt: null });
    expect((await admin.get(`${KEYS}/${id}/revoke`)).statusCode).toBe(404);
    expect((await admin.post(`${KEYS}/${id}/revoke`)).statusCode).toBe(404);
    expect((await admin.get(`/portal/w/${OTHER_WABA}/keys`)).statusCode).toBe(404);
    expect((await ask({ replacesKeyId: id })).statusCode).toBe(422);
    expect(await listKeys({ database }, OTHER_WABA)).toMatchObject([{ state: 'active' }]);
  });
});

describe('rights', () => {
  test('members look and change nothing; only operators decide', async () => {
    const { member, admin, ask, decide, database } = await start();
    await ask();
    expect((await admin.get(`${APPROVALS}/1`)).statusCode).toBe(403);
    expect((await admin.post(`${APPROVALS}/1`, { decision: 'approve', note: '' })).statusCode).toBe(403);
    expect((await admin.get('/portal/operator/audit')).statusCode).toBe(403);
    await decide('1', 'approve');
    const list = await member.get(KEYS);
    expect(list.statusCode).toBe(200);
    expect(list.body).not.toContain('Request a key');
    expect((await member.get(`${KEYS}/requests/1`)).body).not.toContain('Show the key once');
    for (const path of ['requests', 'requests/1/reveal', 'requests/1/withdraw', '1/revoke']) {
      expect((await member.post(`${KEYS}/${path}`)).statusCode).toBe(403);
    }
    expect(await listKeys({ database }, WABA)).toEqual([]);
  });
});

describe('the audit log', () => {
  test('shows a tenant its own entries only, page by page, and narrows them down', async () => {
    const { admin, operator, database, tenantId } = await start();
    const entry = {
      tenantId,
      wabaId: WABA,
      actor: 'ann@shop.example',
      detail: {},
      requestId: null,
      ip: null,
    };
    for (let n = 1; n <= 60; n += 1) {
      await recordAudit(database, { ...entry, action: 'endpoint.paused', target: `endpoint ${n}.` });
    }
    const foreign = { ...entry, tenantId: null, wabaId: OTHER_WABA, action: 'key.created', target: 'theirs' };
    await recordAudit(database, foreign);
    const first = await admin.get(`/portal/w/${WABA}/audit?action=endpoint.paused`);
    expect(first.body).toContain('endpoint 60.');
    expect(first.body).not.toContain('endpoint 10.');
    expect(first.body).not.toContain('theirs');
    await expectValid(first);
    const next = /href="([^"]+)" rel="next"/.exec(first.body)?.[1]?.replaceAll('&amp;', '&') ?? '';
    expect((await admin.get(next)).body).toContain('endpoint 10.');
    expect((await operator.get('/portal/operator/audit?action=key.created')).body).toContain('theirs');
    const none = await admin.get(`/portal/w/${WABA}/audit?actor=nobody`);
    expect(none.body).toContain('No entry matches these filters');
    expect((await admin.get(`/portal/w/${WABA}/audit?cursor=made-up`)).statusCode).toBe(200);
  });
});
