import { describe, expect, test } from 'vitest';
import type { Database } from '../../../src/platform/postgres/database.ts';
import {
  addConversation,
  addKey,
  addMessage,
  OTHER_NUMBER,
  OTHER_WABA,
  startTestApi,
} from './api-harness.ts';

type Request = { method?: 'GET' | 'POST' | 'DELETE'; url: string; payload?: object; headers?: object };

/** Status and message of the error that a request of a tenant gets. */
async function startClient(
  prepare: (database: Database) => Promise<void> = async () => {},
): Promise<(request: Request) => Promise<string>> {
  const api = await startTestApi();
  await prepare(api.database);
  const { authorization } = await addKey(api.database);
  return async ({ headers, ...request }) => {
    const given = { authorization, ...headers } as Record<string, string>;
    const response = await api.app.inject({ ...request, headers: given });
    return `${response.statusCode} ${response.json().error.message}`;
  };
}

type Pattern = { where: string; pattern: string; examples: unknown[] };

/** Every pattern in a schema, with its examples. */
function patternsIn(schema: unknown, where: string): Pattern[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const { pattern, examples = [] } = schema as { pattern?: unknown; examples?: unknown[] };
  const own = typeof pattern === 'string' ? [{ where, pattern, examples }] : [];
  return [...own, ...Object.entries(schema).flatMap(([name, part]) => patternsIn(part, `${where}.${name}`))];
}

describe('the message of an error', () => {
  test('names the object of the path that is not there, and says what its id is', async () => {
    const messageOf = await startClient();
    const missing = [
      ['messages/99999', 'message "99999". Its id is the serviceMessageId'],
      ['conversations/abc', 'conversation "abc". Its id is a whole number'],
      ['conversations/', 'conversation "". Its id is'],
      ['events/wamid.X', 'event "wamid.X". Its id is the webhook-id, evt_'],
      ['events/test_1', 'event "test_1". Its id is the webhook-id, evt_'],
      ['payments/order-7', 'payment "order-7". Its id is the reference id'],
      ['webhook-endpoints/7', 'webhook endpoint "7". Its id is a whole number'],
      ['replays/7', 'replay "7". Its id is a whole number'],
      ['media/x', 'file "x". Its id is med_'],
    ];
    for (const [path, text] of missing)
      expect(await messageOf({ url: `/api/external/${path}` })).toContain(`404 There is no ${text}`);
  });

  test('says that a message has no media, of an own message only', async () => {
    let own = '';
    let foreign = '';
    const messageOf = await startClient(async (database) => {
      own = await addMessage(database, await addConversation(database));
      const there = { wabaId: OTHER_WABA, phoneNumberId: OTHER_NUMBER };
      foreign = await addMessage(database, await addConversation(database, there), there);
    });
    const mediaOf = (id: string) => messageOf({ url: `/api/external/messages/${id}/media` });
    expect(await mediaOf(own)).toBe(`404 Message ${own} has no received media.`);
    for (const id of [foreign, '99999'])
      expect(await mediaOf(id)).toBe(
        `404 There is no message "${id}". Its id is the serviceMessageId, a whole number.`,
      );
  });

  test('says when no header has an API key, and nothing about a key that is refused', async () => {
    const messageOf = await startClient();
    const given = (authorization: string | undefined) =>
      messageOf({ url: '/me', headers: { authorization } });
    for (const header of ['', 'Basic YTpi', 'ck_0'])
      expect(await given(header)).toBe('401 The request has no header "Authorization: Bearer <API key>".');
    for (const header of ['Bearer x', `Bearer ck_${'0'.repeat(64)}`])
      expect(await given(header)).toBe('401 The request carries no valid API key.');
  });

  test('lists the methods of the path, and says which Content-Type is wanted', async () => {
    const messageOf = await startClient();
    expect(await messageOf({ method: 'DELETE', url: '/me' })).toBe(
      '405 This path supports GET, HEAD, not DELETE.',
    );
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const form = {
      method: 'POST',
      url: '/api/external/messages',
      headers,
      payload: Buffer.from('a=b'),
    } as const;
    expect(await messageOf(form)).toContain(
      '415 Send the body as JSON with "Content-Type: application/json"',
    );
  });

  test('about a wrong value says what is allowed, never a regular expression', async () => {
    const messageOf = await startClient();
    const url = 'https://shop.example/hook';
    const text = { phoneNumberId: '800000000000111', to: '+12025550143', type: 'text', text: { body: 'x' } };
    const wrong: [string, object, string][] = [
      ['webhook-endpoints', { url, eventTypes: ['messages'] }, 'must be one of message, status, '],
      ['webhook-endpoints', { url, event_types: ['message'] }, 'no such parameter. Did you mean eventTypes?'],
      ['webhook-endpoints', { url, eventType: ['message'] }, 'no such parameter. Did you mean eventTypes?'],
      ['webhook-endpoints', { url, zzz: 1 }, 'There is no such parameter.'],
      ['webhook-endpoints', { url: 7 }, 'must be a string'],
      ['webhook-endpoints', {}, 'The parameter is missing.'],
      ['messages', { ...text, text: 'hi' }, 'must be an object'],
      ['messages', { ...text, access_token: 'EAAother' }, 'This member is not passed on.'],
      [
        'webhook-endpoints',
        { url, eventTypes: ['mesage'] },
        'test, window.closing, preference, or a text such as upstream.account_update',
      ],
      ['messages', { ...text, to: 'hello' }, 'such as +12025550143'],
      [
        'messages',
        { ...text, to: '123' },
        'a phone number with its country code and 4 to 17 digits, such as +1202',
      ],
      ['messages', { ...text, to: 12_025_550_143 }, 'must be a string'],
    ];
    for (const [path, payload, wanted] of wrong) {
      const message = await messageOf({ method: 'POST', url: `/api/external/${path}`, payload });
      expect(message).toMatch(/^400 /);
      expect(message).toContain(wanted);
      expect(message).not.toMatch(/\^|\\d/);
    }
    expect(await messageOf({ url: '/api/external/events?since=yesterday' })).toBe(
      '400 The parameter must be an ISO 8601 time with time zone, such as 2026-11-19T00:00:00Z.',
    );
    expect(await messageOf({ url: '/api/external/conversations?phone_number_id=1' })).toBe(
      '400 There is no such parameter. Did you mean phoneNumberId?',
    );
    const replay = { method: 'POST', url: '/api/external/replays', payload: { endpointId: 'shop' } } as const;
    expect(await messageOf(replay)).toBe('400 The parameter must be a text such as 3.');
  });

  test('can give an example of every format: each pattern of a request has one that it accepts', async () => {
    const { routes } = await startTestApi();
    const external = routes.filter(({ url }) => /^\/(api\/external|me)\b/.test(url));
    const parts = external.flatMap(({ method, url, schema = {} }) =>
      (['params', 'querystring', 'body', 'headers'] as const).flatMap((part) =>
        patternsIn(schema[part], `${method} ${url} ${part}`),
      ),
    );
    expect(parts.length).toBeGreaterThan(50);
    const bad = parts.filter(
      ({ pattern, examples }) =>
        examples.length === 0 || !examples.every((example) => new RegExp(pattern, 'u').test(String(example))),
    );
    expect(bad.map(({ where, examples }) => `${where}: ${examples}`)).toEqual([]);
  });
});
