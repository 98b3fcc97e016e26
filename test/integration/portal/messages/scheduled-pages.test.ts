import { beforeEach, expect, test } from 'vitest';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { addKey, apiOfFile } from '../../api/api-harness.ts';
import { newOffice, newUser, type Office } from '../portal-browser.ts';

const api = apiOfFile();
let store: Office;
let pages: string;
let id: string;

const HOUR_MS = 3_600_000;
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();

beforeEach(async () => {
  store = await newOffice(api);
  pages = `${store.path}/scheduled`;
  const { authorization } = await addKey(api.database, store.wabaId);
  const answer = await api.app.inject({
    method: 'POST',
    url: '/api/external/messages',
    headers: { authorization },
    payload: {
      ...{ phoneNumberId: store.number, to: '+12025550143', type: 'text' },
      ...{ text: { body: 'Tomorrow at <b>9</b>' }, sendAt: inMs(HOUR_MS) },
    },
  });
  expect(answer.statusCode).toBe(202);
  id = answer.json().serviceMessageId;
});

const text = (body: string) => body.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');
const shown = async () => text((await store.admin.get(pages)).body);

test('an admin moves a scheduled message, and cancels it', async () => {
  expect(await shown()).toContain('12025550143 Tomorrow at &lt;b&gt;9&lt;/b&gt; text');
  await store.admin.get(`${pages}/${id}/move`);
  for (const sendAt of ['2020-01-01T00:00', inMs(36 * 24 * HOUR_MS).slice(0, 16), 'tomorrow']) {
    const { statusCode, body } = await store.admin.post(`${pages}/${id}/move`, { sendAt });
    expect([sendAt, statusCode, text(body)]).toEqual([sendAt, 422, expect.stringContaining('must be')]);
  }
  const later = inMs(2 * HOUR_MS).slice(0, 16);
  const moved = await store.admin.post(`${pages}/${id}/move`, { sendAt: later });
  expect([moved.statusCode, moved.headers.location]).toEqual([303, `${pages}?done=moved`]);
  expect(await shown()).toContain(`${later.replace('T', ' ')}:00 UTC`);
  await store.admin.get(`${pages}/${id}/cancel`);
  const cancelled = await store.admin.post(`${pages}/${id}/cancel`, {});
  expect([cancelled.statusCode, cancelled.headers.location]).toEqual([303, `${pages}?done=cancelled`]);
  expect(await shown()).toContain('No scheduled messages');
  expect((await store.admin.get(`${pages}/${id}/move`)).statusCode).toBe(404);
  const audit = await query<{ action: string }>(
    api.database,
    `select action from audit_log where waba_id = :wabaId and action like 'message.%' order by id`,
    { wabaId: store.wabaId },
  );
  expect(audit.map(({ action }) => action)).toEqual(['message.moved', 'message.cancelled']);
});

test('a member only looks, and another tenant sees nothing', async () => {
  const { browser: member } = await newUser(api, store.tenantId);
  const { body } = await member.get(pages);
  expect(text(body)).toContain('Tomorrow at');
  expect(body).not.toContain(`${id}/cancel`);
  expect((await member.get(`${pages}/${id}/cancel`)).statusCode).toBe(403);
  const other = await newOffice(api);
  expect((await other.admin.get(`${other.path}/scheduled/${id}/cancel`)).statusCode).toBe(404);
  expect(text((await other.admin.get(`${other.path}/scheduled`)).body)).toContain('No scheduled messages');
});
