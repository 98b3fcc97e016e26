import { describe, expect, test } from 'vitest';
import { insertTenant, saveWaba } from '../../../src/features/accounts/accounts.ts';
import { insertUser } from '../../../src/features/users/user-store.ts';
import {
  eraseCustomer,
  eraseTenant,
  eraseUser,
  eraseWaba,
  erasureOf,
  erasuresOf,
} from '../../../src/ops/erasures/erasures.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { objectsHolding, tablesHolding } from '../../support/database-scan.ts';
import { count, NUMBER, startErasureWorld, WABA } from './erasure-world.ts';
import { ASHA, BO, fill, GROUP, tracesOf } from './filled-world.ts';

describe('erasing an account', () => {
  test('a WABA goes with its history, and is free for another tenant, who does not see what was erased before', async () => {
    const world = await startErasureWorld();
    const { database, config, tools } = world;
    await fill(world);
    const earlier = await eraseCustomer(tools, WABA, { phone: BO.waId });
    await world.erase(earlier.erasureId);
    expect(await erasuresOf(tools, WABA)).toHaveLength(1);
    const { erasureId } = await eraseWaba(tools, WABA);
    await world.erase(erasureId);
    const traces = [...tracesOf(ASHA), ...tracesOf(BO), GROUP, 'tenant.example', NUMBER];
    expect(await tablesHolding(database, traces)).toEqual([]);
    const named = (await tablesHolding(database, [WABA])).map((found) => found.split(':')[0]);
    expect(named).toEqual(['audit_log', 'erasures']);
    expect((await objectsHolding(config, [])).all).toEqual([]);
    expect((await erasureOf(tools, null, erasureId)).counts).toMatchObject({ wabas: 1, contacts: 1 });
    const otherTenant = await insertTenant(database, 'Another');
    await saveWaba(database, otherTenant, { wabaId: WABA, accessTokenSealed: null });
    expect(await erasuresOf(tools, WABA)).toEqual([]);
    await expect(erasureOf(tools, WABA, earlier.erasureId)).rejects.toMatchObject({
      code: 'unknown_erasure',
    });
    expect(await erasuresOf(tools, null)).toHaveLength(2);
  });

  test('a WABA of which only statuses are left goes with them', async () => {
    const world = await startErasureWorld();
    const { database, tools } = world;
    await execute(
      database,
      `insert into message_statuses (phone_number_id, upstream_id, status, participant, content)
       values (:number, 'wamid.elsewhere', 'read', '', '{"recipient_id":"${ASHA.waId}"}')`,
      { number: NUMBER },
    );
    const { erasureId } = await eraseWaba(tools, WABA);
    await world.erase(erasureId);
    expect(await tablesHolding(database, [ASHA.waId])).toEqual([]);
    expect((await erasureOf(tools, null, erasureId)).counts).toMatchObject({ wabas: 1 });
  });

  test('files that have expired are in the way of no erasure', async () => {
    const world = await startErasureWorld();
    const { database, tools } = world;
    await fill(world);
    await database.raw(
      `insert into erased_files (message_id, waba_id, object_key) select message_id, waba_id, object_key from media;
       update media set state = 'expired', object_key = null`,
    );
    const { erasureId } = await eraseCustomer(tools, WABA, { phone: ASHA.waId });
    await world.erase(erasureId);
    const whole = await eraseWaba(tools, WABA);
    await world.erase(whole.erasureId);
    expect(await tablesHolding(database, tracesOf(ASHA))).toEqual([]);
  });

  test('a tenant goes with its WABAs and the users that belong nowhere else', async () => {
    const world = await startErasureWorld();
    const { database, tools } = world;
    await fill(world);
    const [tenant] = await query<{ id: string }>(
      database,
      'select tenant_id as id from wabas where waba_id = :waba',
      { waba: WABA },
    );
    const kim = { email: 'kim.only@store.example', name: 'Kim', isOperator: false, passwordHash: null };
    const userId = await insertUser(database, kim);
    await execute(
      database,
      `insert into memberships (user_id, tenant_id, role) values (:userId, :id, 'admin')`,
      { userId, id: tenant?.id ?? '' },
    );
    const { erasureId } = await eraseTenant(tools, tenant?.id ?? '');
    await world.erase(erasureId);
    expect(await tablesHolding(database, [...tracesOf(ASHA), ...tracesOf(BO), kim.email])).toEqual([]);
    expect(await count(database, 'tenants')).toBe(1);
    // Who removed it stays in the audit log.
    const named = (await tablesHolding(database, ['Fixture Store'])).map((found) => found.split(':')[0]);
    expect(named).toEqual(['audit_log']);
  });

  test('a user goes, with the name where it stood beside what they did', async () => {
    const world = await startErasureWorld();
    const { database, tools } = world;
    const kim = { email: 'kim@store.example', name: 'Kim Quill', isOperator: false, passwordHash: null };
    const userId = await insertUser(database, kim);
    await execute(
      database,
      `insert into replays (waba_id, selection, state, total, requested_by) values (:waba, '{}', 'done', 0, :email)`,
      { waba: WABA, email: kim.email },
    );
    const authority = { actor: tools.actor, tenantId: null, userId: null };
    const { erasureId } = await eraseUser(tools, authority, userId);
    await world.erase(erasureId);
    expect(await tablesHolding(database, [kim.email, kim.name])).toEqual([]);
    const [replay] = await query<{ by: string }>(database, 'select requested_by as by from replays');
    expect(replay?.by).toBe(`erased user ${userId}`);
    const operator = await insertUser(database, { ...kim, email: 'op@host.example', isOperator: true });
    await expect(eraseUser(tools, authority, operator)).rejects.toMatchObject({ code: 'last_operator' });
    const other = await insertUser(database, { ...kim, email: 'two@host.example', isOperator: true });
    const both = [await eraseUser(tools, authority, operator), await eraseUser(tools, authority, other)];
    await world.erase(both[0]?.erasureId ?? '');
    await expect(world.erase(both[1]?.erasureId ?? '')).rejects.toThrow('the only operator');
    expect(await count(database, 'users', 'is_operator')).toBe(1);
  });
});
