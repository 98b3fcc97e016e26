import { describe, expect, test } from 'vitest';
import { disableEndpoint } from '../../../src/engine/endpoint/endpoint-health.ts';
import { noteTokenRefused, noteTokenTaken } from '../../../src/features/accounts/access-tokens.ts';
import { setUsageAlert } from '../../../src/features/accounts/usage-alerts.ts';
import { holdEndpoint } from '../../../src/features/endpoints/endpoint-modes.ts';
import { insertApiKey, revokeApiKey } from '../../../src/features/keys/api-key-store.ts';
import { addRecipients } from '../../../src/features/messages/broadcasts/broadcast-lines.ts';
import { changeBroadcast, createBroadcast } from '../../../src/features/messages/broadcasts/broadcasts.ts';
import { pauseItself } from '../../../src/features/messages/broadcasts/switch-broadcast.ts';
import { allAlerts, countNewAlerts } from '../../../src/ops/alerts/alerts.ts';
import { lookForConditions } from '../../../src/ops/alerts/conditions.ts';
import { readOperationEvents } from '../../../src/ops/feed/operation-events.ts';
import { MOST_LISTED } from '../../../src/ops/health/database-questions.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { publish } from '../replays/replay-fixtures.ts';
import {
  endpointId,
  look,
  operator,
  otherTenant,
  seen,
  store,
  stranger,
  tenant,
  useAlertStore,
} from './alert-store.ts';

useAlertStore();

describe('conditions', () => {
  test('an endpoint that was disabled for its failures, not one that a user switched off', async () => {
    const { database } = store;
    const { id } = await addEndpoint(database, tenant.wabaId, 'https://shop.example/other');
    await holdEndpoint({ database, actor: SYSTEM }, tenant.wabaId, {
      id,
      mode: 'disabled',
      reason: 'not needed',
    });
    await database.transaction((trx) =>
      disableEndpoint(trx, endpointId, { version: null, reason: 'it answered 410' }),
    );
    await look();
    expect(await seen()).toEqual([`endpoint_disabled ${endpointId}`]);
    const change = { id: endpointId, mode: 'paused' as const, reason: 'known' };
    await holdEndpoint({ database, actor: SYSTEM }, tenant.wabaId, change);
    await look();
    expect(await seen()).toEqual([]);
  });

  test('an endpoint that fails, however many were disabled before it', async () => {
    const { database } = store;
    await execute(
      database,
      `insert into webhook_endpoints (waba_id, url, secret_sealed)
       select :wabaId, 'https://shop.example/' || n, 'none' from generate_series(1, :many) n`,
      { wabaId: tenant.wabaId, many: MOST_LISTED },
    );
    await execute(database, `update endpoint_health set mode = 'disabled', failing_notified = true`);
    const { id } = await addEndpoint(database, tenant.wabaId, 'https://shop.example/last');
    await execute(database, 'update endpoint_health set failing_notified = true where endpoint_id = :id', {
      id,
    });
    const looked = await lookForConditions(database, new Date());
    const failing = looked.find(({ kind }) => kind === 'endpoint_failing');
    expect(failing).toMatchObject({ conditions: [{ subject: id }], isWhole: true });
    const disabled = looked.find(({ kind }) => kind === 'endpoint_disabled');
    expect(disabled).toMatchObject({ conditions: { length: MOST_LISTED }, isWhole: false });
  });

  test('what one key set is one alert, and never all there is where more than the limit was set', async () => {
    const { database } = store;
    await execute(
      database,
      `insert into webhook_endpoints (waba_id, url, secret_sealed, url_set_by_key)
       select :wabaId, 'https://shop.example/' || n, 'none', 1 from generate_series(1, :many) n`,
      { wabaId: tenant.wabaId, many: MOST_LISTED },
    );
    const looked = await lookForConditions(database, new Date());
    const set = looked.find(({ kind }) => kind === 'url_set_by_key');
    expect(set).toMatchObject({ conditions: { length: 1 }, isWhole: false });
  });

  test('an endpoint that takes deliveries too slowly, and then all deliveries', async () => {
    const { database } = store;
    await publish(database, tenant.wabaId, { count: 2, keys: 2 });
    await look();
    expect(await seen()).toEqual([]);
    await database.raw(`update delivery_queue set created_at = now() - interval '20 minutes';
       update endpoint_health set mode_changed_at = mode_changed_at - interval '1 hour'`);
    await look();
    expect(await seen()).toEqual([`endpoint_backlog ${endpointId}`]);
    expect(await seen(operator)).toEqual(['delivery_backlog ', `endpoint_backlog ${endpointId}`]);
    await execute(database, `update endpoint_health set mode = 'paused'`);
    await look();
    expect(await seen(operator)).toEqual([]);
  });

  test('a request for an API key that waits for an operator, who alone is told, until it is decided', async () => {
    const { database } = store;
    const [{ id } = { id: '' }] = await query<{ id: string }>(
      database,
      `insert into api_key_requests (tenant_id, waba_id, requester_id, requester, purpose, scopes, state, decide_until)
       values (:tenantId, :wabaId, '1', 'x', 'x', '{read}', 'requested', now() + interval '7 days') returning id`,
      { tenantId: tenant.tenantId, wabaId: tenant.wabaId },
    );
    await look();
    expect(await seen()).toEqual([]);
    expect(await seen(operator)).toEqual([`key_request_pending ${id}`]);
    await execute(database, `update api_key_requests set state = 'denied' where id = :id`, { id });
    await look();
    expect(await seen(operator)).toEqual([]);
  });

  test('a broadcast that paused itself, not one that a user paused, until it goes on', async () => {
    const { database } = store;
    const { wabaId } = tenant;
    const tools = { database, actor: SYSTEM };
    const draftOf = async (name: string) => {
      const template = { name: 'winter_sale', language: { code: 'en_US' } };
      const given = { name, phoneNumberId: tenant.number, template };
      const { id } = await createBroadcast(tools, wabaId, given, { requestedBy: 'x', limits: null });
      const ids = { wabaId, broadcastId: id };
      await addRecipients(tools, ids, [{ to: '12025550143' }]);
      await changeBroadcast(tools, ids, 'start', null);
      return ids;
    };
    const itself = await draftOf('Winter sale');
    await changeBroadcast(tools, await draftOf('Spring sale'), 'pause', null);
    await look();
    expect(await seen()).toEqual([]);
    await pauseItself(database, itself, 'A message failed.');
    await look();
    expect([await seen(), await seen(operator), await seen(stranger)]).toEqual([
      [`broadcast_paused ${itself.broadcastId}`],
      [`broadcast_paused ${itself.broadcastId}`],
      [],
    ]);
    const looked = await lookForConditions(database, new Date());
    expect(looked.find(({ kind }) => kind === 'broadcast_paused')).toMatchObject({
      conditions: [
        {
          reason: 'Broadcast "Winter sale" paused itself: A message failed.',
          details: { broadcastId: itself.broadcastId },
        },
      ],
    });
    await changeBroadcast(tools, itself, 'resume', null);
    await look();
    expect(await seen()).toEqual([]);
    await pauseItself(database, itself, 'A message failed again.');
    await look();
    expect(await seen()).toHaveLength(1);
    await changeBroadcast(tools, itself, 'cancel', null);
    await look();
    expect(await seen()).toEqual([]);
  });

  test('a count of a tenant that reached its threshold, in this month only, for operators and their program', async () => {
    const { database } = store;
    const { tenantId, wabaId } = tenant;
    const alert = { metric: 'billable', period: 'month', threshold: 10 } as const;
    await setUsageAlert({ database, actor: SYSTEM }, tenantId, alert);
    const add = async (billable: number, day: string) =>
      await execute(
        database,
        `insert into usage_days (waba_id, day, phone_number_id, category, pricing_type, country, sent, delivered, read, failed, billable, received)
         values (:wabaId, ${day}, :billable, '', '', '', 0, 0, 0, 0, :billable, 99)`,
        { wabaId, billable },
      );
    const month = `cast(date_trunc('month', now() at time zone 'utc') as date)`;
    await add(9, month);
    await add(5, `${month} - 1`);
    await look();
    expect(await seen(operator)).toEqual([]);
    await add(1, month);
    await look();
    await look();
    const during = new Date().toISOString().slice(0, 7);
    expect(await seen(operator)).toEqual([`quota_nearly_used ${tenantId} billable ${during}`]);
    expect(await seen()).toEqual([]);
    const behind = { types: ['alert.*'], tenantId, after: '0', limit: 100 };
    const { events } = await readOperationEvents(database, behind);
    expect(events).toMatchObject([
      {
        type: 'alert.opened',
        tenant: { userId: Number(tenantId) },
        data: { kind: 'quota_nearly_used', ...alert },
      },
    ]);
    await execute(database, `update usage_days set day = day - 40 where waba_id = :wabaId`, { wabaId });
    await look();
    expect(await seen(operator)).toEqual([]);
  });

  test('an API key that expires within 14 days, or did, and was not replaced or revoked', async () => {
    const { database } = store;
    const inDays = (days: number) => new Date(Date.now() + days * 86_400_000);
    const key = (name: string, expiresAt: Date | null) =>
      insertApiKey(database, tenant.wabaId, {
        name,
        expiresAt,
        prefix: 'hg',
        lastFour: 'abcd',
        keyHash: Buffer.from(name),
      });
    const soon = await key('soon', inDays(13.9));
    await key('later', inDays(14.1));
    const over = await key('over', inDays(-1));
    await key('long over', inDays(-14.1));
    await key('for ever', null);
    const replaced = await key('replaced', inDays(1));
    await execute(
      database,
      `insert into api_key_requests (tenant_id, waba_id, requester_id, requester, purpose, scopes, replaces_key_id,
                                     state, decide_until)
       values (:tenantId, :wabaId, '1', 'x', 'x', '{read}', :replaced, 'revealed', now())`,
      { tenantId: tenant.tenantId, wabaId: tenant.wabaId, replaced },
    );
    await look();
    expect(await seen()).toEqual([`api_key_expiring ${soon}`, `api_key_expiring ${over}`].sort());
    expect(await seen(stranger)).toEqual([]);
    await execute(database, 'update api_keys set expires_at = now() where id = :soon', { soon });
    await look();
    expect(await seen()).toHaveLength(2);
    const [alert] = await query<{ reason: string }>(
      database,
      'select reason from alerts where subject = :soon',
      { soon },
    );
    expect(alert?.reason).toMatch(/^API key "soon" \(…abcd\) expired on /);
    await revokeApiKey(database, tenant.wabaId, soon);
    await revokeApiKey(database, tenant.wabaId, over);
    await look();
    expect(await seen()).toEqual([]);
  });

  test('a client certificate that expires within 14 days, or did', async () => {
    const { database } = store;
    const expire = async (inDays: number | null) => {
      const expiresAt = inDays === null ? null : new Date(Date.now() + inDays * 86_400_000);
      await execute(
        database,
        'update webhook_endpoints set client_certificate_expires_at = :expiresAt where waba_id = :wabaId',
        { expiresAt, wabaId: tenant.wabaId },
      );
      await look();
      return await seen();
    };
    const told = [expect.stringMatching(/^client_certificate_expiring \d+$/)];
    expect([await expire(14.1), await expire(13.9), await expire(-1), await expire(null)]).toEqual([
      ...[[], told, told, []],
    ]);
  });

  test('a refused access token, once the look at the numbers has had its turn', async () => {
    const { database } = store;
    await noteTokenRefused(database, tenant.wabaId, 'Session has expired');
    await noteTokenRefused(database, tenant.wabaId, 'said otherwise');
    // It has the numbers looked up, which shows whether it holds.
    expect(await query(database, 'select workflow_type from workflow_tasks')).toEqual([
      { workflow_type: 'refreshNumbers' },
    ]);
    await look();
    expect(await seen()).toEqual([]);
    await execute(
      database,
      `update wabas set token_refused_at = now() - interval '3 minutes' where waba_id = :wabaId`,
      { wabaId: tenant.wabaId },
    );
    await look();
    expect(await seen()).toEqual([`access_token_refused ${tenant.wabaId}`]);
    const [alert] = await allAlerts({ database }, { wabaId: tenant.wabaId, state: 'open', limit: 5 });
    expect(alert?.reason).toMatch(/Session has expired$/);
    await noteTokenTaken(database, tenant.wabaId);
    await look();
    expect(await seen()).toEqual([]);
  });

  test('payloads in quarantine, of our WABAs and of others; not what is only counted', async () => {
    const { database } = store;
    const count = (reason: string, wabaId: string, daysAgo = 0) =>
      execute(
        database,
        `insert into quarantine_counts (day, reason, field, waba_id, count)
         values ((now() at time zone 'utc')::date - cast(:daysAgo as integer), :reason, 'messages', :wabaId, 2)`,
        { daysAgo, reason, wabaId },
      );
    await count('missing_id', tenant.wabaId);
    await count('unknown_field', otherTenant.wabaId);
    await count('missing_id', otherTenant.wabaId, 2);
    await count('unknown_phone_number', '123');
    await count('unknown_waba', '456');
    await look();
    expect(await seen()).toEqual([`payloads_quarantined ${tenant.wabaId}`]);
    expect(await seen(stranger)).toEqual([]);
    expect(await seen(operator)).toEqual([
      'payloads_quarantined 123',
      `payloads_quarantined ${tenant.wabaId}`,
    ]);
  });

  test('bodies that wait for intake, and those that failed there', async () => {
    const { database } = store;
    await execute(
      database,
      `insert into inbox (body, state, received_at) values ('{}', 'new', now() - interval '6 minutes'), ('{}', 'failed', now())`,
    );
    await look();
    expect(await seen(operator)).toEqual(['intake_backlog ', 'intake_failed ']);
    expect(await countNewAlerts(database, operator)).toBe(2);
    expect(await seen()).toEqual([]);
  });
});
