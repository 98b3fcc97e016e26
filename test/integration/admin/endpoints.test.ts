import { describe, expect, test } from 'vitest';
import { query } from '../../../src/database/sql.ts';
import { endpointSecretPlace } from '../../../src/domain/secret-places.ts';
import { isWebhookSecret } from '../../../src/domain/webhook/webhook-signature.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { OTHER_WABA, startAdmin, WABA } from './admin-cli.ts';

describe('admin endpoint', () => {
  test('adds an endpoint whose secret is shown once and stored sealed, bound to its row', async () => {
    const { database, json } = await startAdmin();
    const endpoint = await json(
      ...['endpoint', 'add', '--waba', WABA, '--url', 'http://127.0.0.1:9/hook', '--description', 'shop'],
    );
    expect(endpoint).toEqual({
      id: expect.stringMatching(/^\d+$/),
      secret: expect.stringMatching(/^whsec_/),
      wabaId: WABA,
      url: 'http://127.0.0.1:9/hook',
      description: 'shop',
      eventTypes: null,
      mode: 'open',
    });
    expect(isWebhookSecret(endpoint.secret)).toBe(true);
    const [row] = await query<{ text: string; sealed: string }>(
      database,
      'select webhook_endpoints::text as text, secret_sealed as sealed from webhook_endpoints',
    );
    expect(row?.text).not.toContain(endpoint.secret);
    expect(testSecretBox.open(row?.sealed ?? '', endpointSecretPlace(endpoint.id))).toBe(endpoint.secret);
    expect(() => testSecretBox.open(row?.sealed ?? '', endpointSecretPlace('999'))).toThrow();
    const shown = await json('endpoint', 'show', endpoint.id);
    expect(shown).toMatchObject({ id: endpoint.id, mode: 'open', url: endpoint.url });
    expect(JSON.stringify(shown)).not.toContain('whsec_');
  });

  test('filters by event types, and lists the endpoints of one WABA only', async () => {
    const { json, admin } = await startAdmin();
    const add = ['endpoint', 'add', '--waba', WABA, '--url', 'https://shop.example/hook'];
    const { id, eventTypes } = await json(...add, '--events', 'message, media.ready,message');
    expect(eventTypes).toEqual(['message', 'media.ready']);
    expect(await json('endpoint', 'list', '--waba', WABA)).toMatchObject([{ id, eventTypes }]);
    expect(await json('endpoint', 'list', '--waba', OTHER_WABA)).toEqual([]);
    const list = await admin(['endpoint', 'list', '--waba', WABA]);
    expect(list.stdout).toContain(`${id}   open  message, media.ready  https://shop.example/hook`);
    const wrong = await admin([...add, '--events', 'message,mesage']);
    expect(wrong).toMatchObject({ exitCode: 2 });
    expect(wrong.stderr).toContain('There is no event type "mesage"');
    expect(await admin([...add, '--events', ','])).toMatchObject({ exitCode: 2 });
  });

  test('pauses and enables', async () => {
    const { json, admin } = await startAdmin();
    const { id } = await json('endpoint', 'add', '--waba', WABA, '--url', 'https://shop.example/hook');
    expect(await json('endpoint', 'pause', id)).toMatchObject({
      id,
      mode: 'paused',
      modeReason: 'paused by an operator',
    });
    expect(await json('endpoint', 'enable', id)).toMatchObject({ mode: 'open', modeReason: null });
    expect(await admin(['endpoint', 'pause', '4242'])).toMatchObject({
      exitCode: 1,
      stderr: 'error: There is no webhook endpoint 4242.\n',
    });
    expect(await admin(['endpoint', 'show', 'x'])).toMatchObject({ exitCode: 2 });
  });

  test.each([
    ['a private address', 'http://10.0.0.1/hook', 'address that webhooks are not sent to'],
    ['cloud metadata in disguise', 'http://0xa9fea9fe/latest', 'address that webhooks are not sent to'],
    ['no URL', 'shop.example', 'not valid'],
  ])('refuses %s as the sender would', async (_, url, message) => {
    const { database, admin } = await startAdmin();
    const run = await admin(['endpoint', 'add', '--waba', WABA, '--url', url, '--json']);
    expect(run.exitCode).toBe(1);
    expect(run.stderr).toContain(message);
    expect(JSON.parse(run.stdout).error.message).toContain(message);
    expect(await query(database, 'select 1 from webhook_endpoints')).toEqual([]);
  });

  test('refuses http and loopback where the settings do', async () => {
    const strict = { HELIOGRAPH_WEBHOOK_ALLOW_HTTP: 'false', HELIOGRAPH_WEBHOOK_ALLOW_CIDRS: '' };
    const { admin } = await startAdmin({ settings: strict });
    for (const url of [
      'http://shop.example/',
      'https://127.0.0.1/',
      'https://localhost/',
      'https://[::1]/',
    ]) {
      expect(await admin(['endpoint', 'add', '--waba', WABA, '--url', url])).toMatchObject({ exitCode: 1 });
    }
  });
});
