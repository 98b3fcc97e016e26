import { expect, test } from 'vitest';
import { startSession } from '../../../src/features/users/user-sessions.ts';
import { insertUser } from '../../../src/features/users/user-store.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { startAdmin } from '../../support/admin-cli.ts';

test('commands name one of several accounts of an address by its id, remove a membership or the account, and withdraw links', async () => {
  const { admin, json, database } = await startAdmin();
  const person = { email: 'asha@store.example', name: 'Asha', isOperator: false, passwordHash: null };
  const [first, second] = [await insertUser(database, person), await insertUser(database, person)];
  await database.raw(
    `insert into memberships (user_id, tenant_id, role) values (:first, 1, 'admin'), (:first, 2, 'member')`,
    { first },
  );
  await database.raw(`insert into memberships (user_id, tenant_id, role) values (:second, 2, 'member')`, {
    second,
  });

  const ambiguous = await admin(['user', 'remove', person.email]);
  expect([ambiguous.exitCode, ambiguous.stderr]).toEqual([2, expect.stringContaining(`${first}, ${second}`)]);
  const removed = { id: first, email: person.email, state: 'removed' };
  expect(await json('user', 'remove', first, '--tenant', '1')).toEqual({ ...removed, tenantId: 1 });
  expect((await admin(['user', 'remove', first, '--tenant', '1'])).stderr).toContain('There is no such user');
  const listed = await json('user', 'list');
  expect(listed).toMatchObject([
    { id: first, role: 'member', tenantId: 2, isOperator: false },
    { id: second, memberships: [{ tenantId: 2, role: 'member', isDisabled: false }] },
  ]);
  expect(await json('user', 'remove', first)).toEqual({ ...removed, tenantId: null });
  expect(await query(database, 'select id from users')).toEqual([{ id: second }]);

  await json('user', 'invite', '--email', 'new@store.example', '--role', 'member', '--tenant', '1');
  await json('user', 'password-link', person.email);
  const open = await json('user', 'invitations');
  expect(open).toMatchObject([
    { email: person.email, role: null, userId: second },
    { email: 'new@store.example', role: 'member', tenantId: 1, invitedBy: 'operator command' },
  ]);
  expect(JSON.stringify(open)).not.toContain('/portal/invitations/');
  const { id } = open[1];
  expect(await json('user', 'withdraw', id)).toEqual({ id, email: 'new@store.example', state: 'withdrawn' });
  expect((await admin(['user', 'withdraw', id])).exitCode).not.toBe(0);
  expect((await admin(['user', 'invitations'])).stdout).toContain('a new password');
  const actions = await query<{ action: string; tenant_id: string }>(
    database,
    `select action, tenant_id from audit_log where action like 'user.removed' order by id`,
  );
  expect(actions).toEqual([
    { action: 'user.removed', tenant_id: '1' },
    { action: 'user.removed', tenant_id: '2' },
  ]);
});

test('commands list and end the sessions of a user, and reset the second factor', async () => {
  const { admin, json, database } = await startAdmin();
  const email = 'asha@store.example';
  const userId = await insertUser(database, { email, name: 'Asha', isOperator: true, passwordHash: null });
  const place = { userId, tenantId: null, passwordLinkBy: 'ravi@host.example', begunBy: 'oidc' } as const;
  const client = { ip: '192.0.2.1', userAgent: 'a browser' };
  for (const hasSecondFactor of [false, true, true]) {
    await startSession({ database }, { ...place, hasSecondFactor }, client);
  }
  const sessions = await json('user', 'sessions', email);
  expect(sessions).toHaveLength(3);
  expect(sessions).toContainEqual(
    expect.objectContaining({
      begunBy: 'oidc',
      hasSecondFactor: false,
      ip: '192.0.2.1',
      passwordLinkBy: 'ravi@host.example',
    }),
  );
  const [{ id }] = sessions as [{ id: string }];
  expect(await json('user', 'sign-out', email, '--session', id)).toEqual({ id: userId, email, ended: 1 });
  expect((await admin(['user', 'sign-out', email, '--session', id])).exitCode).not.toBe(0);
  await database.raw(
    `insert into user_totp (user_id, secret_sealed, last_step) values (:userId, 'v1:x', 1)`,
    { userId },
  );
  expect(await json('user', 'totp-reset', email)).toEqual({ id: userId, email, state: 'reset' });
  expect((await admin(['user', 'totp-reset', email])).stderr).toContain('has no second factor');
  expect(await query(database, 'select from user_sessions')).toEqual([]);
  expect(await query(database, 'select kind, by from user_notices order by id')).toEqual([
    { kind: 'sessions_ended', by: 'operator command' },
    { kind: 'second_factor_reset', by: 'operator command' },
  ]);
});
