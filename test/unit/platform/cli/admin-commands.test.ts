import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { buildAdminCommand } from '../../../../src/admin.ts';

type Leaf = { path: string; command: Command };

function leaves(command: Command, path: string[] = []): Leaf[] {
  if (command.commands.length === 0) return [{ path: path.join(' '), command }];
  return command.commands.flatMap((part) => leaves(part, [...path, part.name()]));
}

test('the admin command line explains every command with an example of it, and offers --json everywhere', () => {
  const all = leaves(buildAdminCommand());
  expect(all.map(({ path }) => path)).toEqual([
    ...[
      'tenant create',
      'tenant list',
      'tenant rename',
      'tenant policy',
      'tenant set-policy',
      'tenant usage',
      'tenant remove',
    ],
    ...[
      'waba add',
      'waba list',
      'waba set-token',
      'waba set-pace',
      'waba set-marketing',
      'waba remove-number',
      'waba check',
      'waba remove',
    ],
    ...[
      'user set-up-link',
      'user list',
      'user invite',
      'user password-link',
      'user confirm-password',
      'user disable',
      'user enable',
      'user remove',
      'user sessions',
      'user sign-out',
      'user totp-reset',
      'user invitations',
      'user withdraw',
    ],
    ...['key create', 'key list', 'key limit', 'key revoke'],
    ...['key-request list', 'key-request show', 'key-request approve', 'key-request deny'],
    ...['platform-key create', 'platform-key list', 'platform-key revoke'],
    ...['put-tenant', 'list-tenants', 'get-tenant', 'update-tenant', 'put-tenant-policy', 'remove-tenant']
      .concat('put-waba', 'remove-waba', 'check-tenant-waba')
      .concat('put-tenant-key', 'rotate-tenant-key', 'delete-tenant-key')
      .concat('put-tenant-endpoint', 'delete-tenant-endpoint')
      .concat('list-tenant-users', 'put-tenant-user', 'delete-tenant-user')
      .concat('get-tenant-usage', 'put-usage-alert')
      .concat('create-portal-session', 'end-portal-sessions')
      .concat('create-setup-link', 'list-setup-links', 'get-setup-link', 'revoke-setup-link')
      .concat('put-brand', 'put-tenant-brand')
      .concat('list-platform-audit', 'list-operation-events')
      .concat('list-operations-hooks', 'get-operations-hook', 'put-operations-hook', 'delete-operations-hook')
      .concat('rotate-operations-hook-secret', 'test-operations-hook')
      .map((name) => `platform ${name}`),
    ...['endpoint add', 'endpoint list', 'endpoint show', 'endpoint update', 'endpoint pause'],
    ...[
      'endpoint disable',
      'endpoint enable',
      'endpoint retry',
      'endpoint rotate-secret',
      'endpoint rotate-signing-key',
      'endpoint client-certificate',
      'endpoint test',
      'endpoint delete',
      'endpoint targets',
    ],
    ...['operations-url set', 'operations-url show', 'operations-url rotate-secret', 'operations-url clear'],
    ...['alerts list', 'alerts resolve', 'mail test'],
    ...['delivery retry', 'delivery drop'],
    ...['replay start', 'replay list', 'replay show', 'replay pause', 'replay resume', 'replay cancel'],
    ...['list', 'show', 'pause', 'resume', 'cancel'].map((name) => `broadcast ${name}`),
    ...['opt-out-words set', 'opt-out-words show'],
    ...[
      'find',
      'events search-attribute',
      'inbox status',
      'inbox retry',
      'top',
      ...['customer', 'conversation', 'waba', 'tenant', 'user'].map((kind) => `erase ${kind}`),
      ...['erasures list', 'erasures show', 'erasures verify', 'export customer'],
      'secrets status',
      'secrets reencrypt',
      'audit verify',
      'audit export',
      'migrate status',
    ],
  ]);
  for (const { path, command } of all) {
    let help = '';
    command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
    expect(help).toContain(`npm run -s admin -- ${path}`);
    expect(help).toContain('--json');
    expect(command.description()).not.toBe('');
  }
});
