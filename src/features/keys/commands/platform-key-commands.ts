import { Command } from 'commander';
import {
  type AdminOutcome,
  adminAction,
  alignedFields,
  alignedTable,
  parseIsoTime,
} from '../../../platform/cli/admin-action.ts';
import { parseList } from '../../../platform/cli/given-text.ts';
import { listPlatformKeys, PLATFORM_SCOPES } from '../platform-key-store.ts';
import { createPlatformKey, type NewPlatformKey, revokePlatformKey } from '../platform-keys.ts';

/** Keys of the operator's own program, for /api/platform. */
export function platformKeyCommand(): Command {
  return new Command('platform-key')
    .description(
      'keys of the operator’s program for the platform API, which creates tenants, WABAs and API keys',
    )
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(revokeCommand());
}

type CreateOptions = Pick<NewPlatformKey, 'name' | 'scopes' | 'networks' | 'fromAnywhere'> & {
  grantable?: string[];
  expires?: Date;
};

function createCommand(): Command {
  const command = new Command('create')
    .description('make a platform key; it is shown this once and cannot be read back')
    .requiredOption('--name <name>', 'its purpose')
    .option(
      '--scopes <scopes>',
      `its scopes, comma separated: ${PLATFORM_SCOPES.join(', ')} (default: read)`,
      parseList,
    )
    .option(
      '--grantable <scopes>',
      'with the scope keys: the scopes that it may give to API keys of tenants (default: send,manage_webhooks)',
      parseList,
    )
    .option(
      '--networks <networks>',
      'from where it may be used, comma separated addresses or CIDR',
      parseList,
    )
    .option(
      '--from-anywhere',
      'use it from anywhere, although it has a scope that needs networks in production',
    )
    .option(
      '--expires <ISO time>',
      'when it ends, such as 2027-01-31T12:00:00Z (default: never)',
      parseIsoTime,
    );
  const example = 'platform-key create --name crm --scopes read,tenants,wabas,keys --networks 203.0.113.0/28';
  return adminAction<CreateOptions>(command, example, async ({ tools, options }) => {
    const { grantable, expires = null, ...given } = options;
    const wanted = {
      ...given,
      expiresAt: expires,
      ...(grantable !== undefined && { grantableScopes: grantable }),
    };
    return describeMade(await createPlatformKey(tools, wanted, tools.config.mode));
  });
}

function describeMade(key: Awaited<ReturnType<typeof createPlatformKey>>): AdminOutcome {
  const fields = alignedFields([
    ['id', key.id],
    ['platform key', key.platformKey],
    ['name', key.name],
    ['scopes', key.scopes],
    ['grantable', key.grantableScopes],
    ['networks', key.allowedNetworks ?? 'anywhere'],
    ['expires', key.expiresAt ?? 'never'],
  ]);
  return { json: key, text: `${fields}\n\nKeep the key now: it is not shown again.` };
}

function listCommand(): Command {
  const command = new Command('list').description('list the platform keys');
  return adminAction(command, 'platform-key list', async ({ tools }) => {
    const keys = await listPlatformKeys(tools.database);
    return {
      json: keys,
      text: alignedTable(
        ['ID', 'KEY', 'NAME', 'SCOPES', 'GRANTABLE', 'NETWORKS', 'STATE', 'CREATED', 'EXPIRES', 'LAST USED'],
        keys.map((key) => [
          ...[
            key.id,
            `${key.prefix}…${key.lastFour}`,
            key.name,
            key.scopes.join(','),
            key.grantableScopes.join(','),
          ],
          ...[key.allowedNetworks ?? 'anywhere', key.state, key.createdAt, key.expiresAt, key.lastUsedAt],
        ]),
        'There are no platform keys yet; make one with: admin platform-key create --name <name>',
      ),
    };
  });
}

function revokeCommand(): Command {
  const command = new Command('revoke')
    .description('revoke a platform key permanently; the next request with it returns 401')
    .argument('<id>', 'the id of the key, as platform-key list shows it');
  return adminAction(command, 'platform-key revoke 2', async ({ tools, args }) => {
    const revoked = await revokePlatformKey(tools, args[0] ?? '');
    const text = `Platform key ${revoked.id} is revoked since ${revoked.revokedAt.toISOString()}.`;
    return { json: revoked, text };
  });
}
