import { describe, expect, test } from 'vitest';
import { ENDPOINT_HEADERS, ENDPOINT_SECRET } from '../../../src/engine/endpoint/endpoint-secrets.ts';
import { isWebhookSecret, newWebhookSecret } from '../../../src/engine/endpoint/webhook-signature.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { OTHER_WABA, startAdmin, WABA } from '../../support/admin-cli.ts';
import { newQueuedRow, queueRows } from '../../support/queued-rows.ts';
import { testSecretBox } from '../../support/test-accounts.ts';

const ADD = ['endpoint', 'add', '--waba', WABA, '--url', 'https://shop.example/hook'];

describe('admin endpoint', () => {
  test('adds an endpoint whose secret is shown once and stored sealed, bound to its row', async () => {
    const { database, json } = await startAdmin();
    const endpoint = await json(
      ...['endpoint', 'add', '--waba', WABA, '--url', 'http://127.0.0.1:9/hook', '--description', 'shop'],
    );
    expect(endpoint).toMatchObject({
      id: expect.stringMatching(/^\d+$/),
      secret: expect.stringMatching(/^whsec_/),
      wabaId: WABA,
      url: 'http://127.0.0.1:9/hook',
      description: 'shop',
      eventTypes: null,
      phoneNumberIds: null,
      customHeaderNames: [],
      orderScope: 'event',
      mode: 'open',
      version: 1,
    });
    expect(isWebhookSecret(endpoint.secret)).toBe(true);
    const [row] = await query<{ text: string; sealed: string }>(
      database,
      'select webhook_endpoints::text as text, secret_sealed as sealed from webhook_endpoints',
    );
    expect(row?.text).not.toContain(endpoint.secret);
    expect(testSecretBox.open(row?.sealed ?? '', ENDPOINT_SECRET.place(endpoint.id))).toBe(endpoint.secret);
    expect(() => testSecretBox.open(row?.sealed ?? '', ENDPOINT_SECRET.place('999'))).toThrow();
    const shown = await json('endpoint', 'show', endpoint.id);
    expect(shown).toMatchObject({ id: endpoint.id, mode: 'open', url: endpoint.url, waiting: { count: 0 } });
    expect(JSON.stringify(shown)).not.toMatch(/whsec_|ealed/);
  });

  test('filters by event types, and lists the endpoints of one WABA only', async () => {
    const { json, admin } = await startAdmin();
    const { id, eventTypes } = await json(...ADD, '--events', 'message, media.ready,message');
    expect(eventTypes).toEqual(['message', 'media.ready']);
    expect(await json('endpoint', 'list', '--waba', WABA)).toMatchObject([{ id, eventTypes }]);
    expect(await json('endpoint', 'list', '--waba', OTHER_WABA)).toEqual([]);
    const list = await admin(['endpoint', 'list', '--waba', WABA]);
    expect(list.stdout).toContain(`${id}   open  0        message, media.ready  https://shop.example/hook`);
    const all = await admin(['endpoint', 'list']);
    expect(all.stdout).toMatch(new RegExp(`^WABA +ID +MODE.*\\n${WABA} +${id} +open `, 's'));
    expect(await json('endpoint', 'list')).toMatchObject([{ id, wabaId: WABA }]);
    expect((await admin(['replay', 'list'])).stdout).toContain('There are no replays.');
    const wrong = await admin([...ADD, '--events', 'message,mesage']);
    expect(wrong).toMatchObject({ exitCode: 2 });
    expect(wrong.stderr).toContain('not "mesage"');
    expect(await admin([...ADD, '--events', ','])).toMatchObject({ exitCode: 2 });
  });

  test('takes every option, changes only what is named, and goes back to defaults', async () => {
    const { json, admin } = await startAdmin();
    const { id } = await json(
      ...[...ADD, '--events', 'message', '--numbers', '800000000000112', '--retry-schedule', '5, 60'],
      ...['--timeout-ms', '5000', '--max-in-flight', '7', '--rate-limit', '20'],
      ...[
        '--block-limit',
        '3600',
        '--delivery-workflows',
        'always',
        '--always-workflows-for',
        'payment, order',
        '--order-scope',
        'conversation',
        '--header',
        'X-Shop: a: b',
      ],
      ...['--buffer', '5', '--buffer-max', '60', '--buffer-messages', '9', '--buffer-types', 'text, image'],
    );
    const all = {
      eventTypes: ['message'],
      phoneNumberIds: ['800000000000112'],
      retryScheduleSeconds: [5, 60],
      timeoutMs: 5000,
      maxInFlight: 7,
      rateLimitPerSecond: 20,
      blockLimitSeconds: 3600,
      deliveryWorkflows: 'always',
      alwaysWorkflowsFor: ['payment', 'order'],
      orderScope: 'conversation',
      bufferSeconds: 5,
      bufferMaxSeconds: 60,
      bufferMaxMessages: 9,
      bufferTypes: ['text', 'image'],
      customHeaderNames: ['X-Shop'],
      version: 1,
    };
    expect(await json('endpoint', 'show', id)).toMatchObject(all);
    expect(await json('endpoint', 'update', id, '--rate-limit', '30')).toMatchObject({
      ...all,
      rateLimitPerSecond: 30,
      version: 2,
    });
    const defaults = ['events', 'numbers', 'retry-schedule', 'timeout-ms', 'max-in-flight'];
    const buffer = ['buffer', 'buffer-max', 'buffer-messages', 'buffer-types'];
    const reset = [
      ...defaults,
      ...buffer,
      'rate-limit',
      'block-limit',
      'delivery-workflows',
      'always-workflows-for',
    ].flatMap((name) => [`--${name}`, 'default']);
    expect(await json('endpoint', 'update', id, ...reset)).toMatchObject({
      eventTypes: null,
      phoneNumberIds: null,
      retryScheduleSeconds: null,
      timeoutMs: null,
      maxInFlight: null,
      rateLimitPerSecond: null,
      blockLimitSeconds: null,
      deliveryWorkflows: null,
      alwaysWorkflowsFor: null,
      bufferSeconds: null,
      bufferMaxSeconds: null,
      bufferMaxMessages: null,
      bufferTypes: null,
    });
    const scope = ['--order-scope', 'event'];
    const refused = await admin(['endpoint', 'update', id, ...scope, '--buffer', '5', '--json']);
    expect(refused.stdout).toContain('"buffer_needs_conversation_order"');
    const show = await admin(['endpoint', 'show', id]);
    expect(show.stdout).toMatch(/pending +nothing\n/);
    expect(show.stdout).toMatch(/custom headers +X-Shop\n/);
    expect(await admin(['endpoint', 'update', id])).toMatchObject({ exitCode: 2 });
    expect(await admin(['endpoint', 'update', id, '--rate-limit', 'many'])).toMatchObject({ exitCode: 2 });
    expect(await admin([...ADD, '--numbers', '800000000000221', '--json'])).toMatchObject({
      exitCode: 1,
      stdout: expect.stringContaining('"unknown_phone_number"'),
    });
  });

  test('keeps custom headers sealed and never shows their values', async () => {
    const { database, json, admin } = await startAdmin();
    const { id } = await json(...ADD, '--header', 'X-Shop: shopvalue', '--header', 'X-Old: two');
    const change = ['endpoint', 'update', id, '--headers-stdin', '--remove-header', 'x-old', '--json'];
    const run = await admin(change, '{"Authorization":"Bearer topsecret"}');
    expect(run).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(run.stdout).customHeaderNames).toEqual(['X-Shop', 'Authorization']);
    const texts = [run.stdout, (await admin(['endpoint', 'show', id])).stdout];
    const [row] = await query<{ text: string; sealed: string }>(
      database,
      'select e::text as text, custom_headers_sealed as sealed from webhook_endpoints e',
    );
    for (const text of [...texts, row?.text]) expect(text).not.toMatch(/topsecret|shopvalue/);
    expect(JSON.parse(testSecretBox.open(row?.sealed ?? '', ENDPOINT_HEADERS.place(id)))).toEqual({
      'X-Shop': 'shopvalue',
      Authorization: 'Bearer topsecret',
    });
    for (const input of ['', '[]', '{"a":1}', 'x'.repeat(70_000)]) {
      expect(await admin(change, input)).toMatchObject({ exitCode: 2 });
    }
    expect(await admin(['endpoint', 'update', id, '--header', 'Host: evil'])).toMatchObject({ exitCode: 2 });
    expect(await json('endpoint', 'update', id, '--clear-headers')).toMatchObject({ customHeaderNames: [] });
  });

  test('pauses, disables and enables; what waits is counted, and needs a choice', async () => {
    const { database, json, admin } = await startAdmin();
    const { id } = await json(...ADD);
    const paused = { id, mode: 'paused', modeReason: 'paused by an operator' };
    expect(await json('endpoint', 'pause', id)).toMatchObject(paused);
    expect(await json('endpoint', 'enable', id)).toMatchObject({
      mode: 'open',
      modeReason: null,
      dropped: 0,
    });
    expect(await json('endpoint', 'disable', id, '--reason', 'moves house')).toMatchObject({
      mode: 'disabled',
      modeReason: 'moves house',
    });
    await queueRows(database, [newQueuedRow(id, 'a'), newQueuedRow(id, 'a'), newQueuedRow(id, 'b', false)]);
    const show = await admin(['endpoint', 'show', id]);
    expect(show.stdout).toMatch(/pending +3 \(1 due, 1 queued, 1 unreleased\); the oldest for \d+ s\n/);
    const asked = await admin(['endpoint', 'enable', id, '--json']);
    expect(asked).toMatchObject({ exitCode: 1 });
    expect(JSON.parse(asked.stdout).error).toEqual({
      code: 'waiting_choice_required',
      message: expect.stringContaining(`3 deliveries wait for endpoint ${id}: choose "send"`),
    });
    expect(await json('endpoint', 'enable', id, '--waiting', 'send')).toMatchObject({
      mode: 'open',
      waiting: { count: 3 },
    });
    await json('endpoint', 'pause', id);
    expect(await json('endpoint', 'enable', id, '--waiting', 'drop')).toMatchObject({
      mode: 'open',
      dropped: 3,
      waiting: { count: 0, oldestMs: null },
    });
    expect(await admin(['endpoint', 'enable', id, '--waiting', 'keep'])).toMatchObject({ exitCode: 2 });
    expect(await admin(['endpoint', 'pause', '4242'])).toMatchObject({
      exitCode: 1,
      stderr: 'error: There is no webhook endpoint 4242.\n',
    });
    expect(await admin(['endpoint', 'show', 'x'])).toMatchObject({ exitCode: 2 });
  });

  test('rotates the secret, to one of the tenant too, and shows it once', async () => {
    const { database, json, admin } = await startAdmin();
    const { id, secret } = await json(...ADD);
    const rotated = await json('endpoint', 'rotate-secret', id, '--overlap-hours', '48');
    expect(rotated.secret).not.toBe(secret);
    const hours = (Date.parse(rotated.previousSecretExpiresAt) - Date.now()) / 3_600_000;
    expect(hours).toBeCloseTo(48, 1);
    const own = newWebhookSecret();
    const command = ['endpoint', 'rotate-secret', id, '--secret-stdin', '--overlap-hours', '0', '--json'];
    expect(JSON.parse((await admin(command, `${own}\n`)).stdout)).toEqual({
      id,
      secret: own,
      previousSecretExpiresAt: null,
    });
    expect(await admin(command, own)).toMatchObject({ exitCode: 1 });
    expect(await admin(command, 'hunter2')).toMatchObject({ exitCode: 2 });
    const [row] = await query<{ now: string; before: string | null }>(
      database,
      'select secret_sealed as now, previous_secret_sealed as before from webhook_endpoints',
    );
    expect(testSecretBox.open(row?.now ?? '', ENDPOINT_SECRET.place(id))).toBe(own);
    expect(row?.before).toBeNull();
  });

  test('deletes only when told so, drops what waits and keeps the log', async () => {
    const { database, json, admin } = await startAdmin();
    const { id } = await json(...ADD);
    const row = newQueuedRow(id, 'a');
    await queueRows(database, [row, newQueuedRow(id, 'a')]);
    const warned = await admin(['endpoint', 'delete', id]);
    expect(warned).toMatchObject({ exitCode: 2 });
    expect(warned.stderr).toContain('2 pending deliveries: confirm with --yes');
    expect(await json('endpoint', 'show', id)).toMatchObject({ mode: 'open', waiting: { count: 2 } });
    await execute(
      database,
      `update delivery_queue set state = 'claimed', lease_until = now() + interval '1 min'
                              where delivery_id = :deliveryId`,
      { deliveryId: row.deliveryId },
    );
    expect(await json('endpoint', 'delete', id, '--yes')).toEqual({ id, dropped: 2 });
    expect(await admin(['endpoint', 'show', id])).toMatchObject({ exitCode: 1 });
    expect(await query(database, 'select state, last_error as error from deliveries')).toEqual(
      [1, 2].map(() => ({ state: 'dropped', error: 'dropped: the endpoint was deleted' })),
    );
    expect(await query(database, 'select 1 from delivery_queue')).toEqual([]);
  });

  test.each([
    ['a private address', 'http://10.0.0.1/hook', 'address that webhooks are not sent to'],
    ['cloud metadata in disguise', 'http://0xa9fea9fe/latest', 'address that webhooks are not sent to'],
    ['no URL', 'shop.example', 'not valid'],
  ])('refuses %s as the sender would', async (_, url, message) => {
    const { database, json, admin } = await startAdmin();
    const run = await admin(['endpoint', 'add', '--waba', WABA, '--url', url, '--json']);
    expect(run.exitCode).toBe(1);
    expect(run.stderr).toContain(message);
    expect(JSON.parse(run.stdout).error.message).toContain(message);
    expect(await query(database, 'select 1 from webhook_endpoints')).toEqual([]);
    const { id } = await json(...ADD);
    expect(await admin(['endpoint', 'update', id, '--url', url])).toMatchObject({ exitCode: 1 });
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
