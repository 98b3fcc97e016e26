import { Command } from 'commander';
import { adminAction } from '../../platform/cli/admin-action.ts';
import { alignedFields, alignedTable } from '../../platform/cli/aligned-text.ts';
import { parseIsoTime } from '../../platform/cli/expiry-option.ts';
import { createKey, listKeys, revokeKeyAsOperator } from '../api-keys.ts';

type CreateOptions = { waba: string; name: string; expires?: Date; scopes?: string[] };

/** `admin key …` */
export function keyCommand(): Command {
  return new Command('key')
    .description('API keys of the tenants')
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(revokeCommand());
}

function createCommand(): Command {
  const command = new Command('create')
    .description('make an API key for a WABA; it is shown this once and cannot be read back')
    .requiredOption('--waba <id>', 'the WABA that the key acts for')
    .option('--name <name>', 'what it is for', 'made by an operator')
    .option(
      '--expires <ISO time>',
      'when it ends, such as 2027-01-31T12:00:00Z (default: never)',
      parseIsoTime,
    )
    .option(
      '--scopes <scopes>',
      'what it may do, comma separated: read, send, manage_webhooks (default: all)',
      parseScopes,
    );
  const example = 'key create --waba 900000000000101 --name "order system" --json';
  return adminAction<CreateOptions>(command, example, async ({ tools, options }) => {
    const { waba, name, expires = null, scopes } = options;
    const limits = { expiresAt: expires, ...(scopes !== undefined && { scopes }) };
    const key = await createKey(tools, waba, { name, ...limits });
    const isExpired = expires !== null && expires.getTime() <= Date.now();
    return {
      json: key,
      notes: isExpired ? ['the time of --expires has passed: requests with this key answer 401.'] : [],
      text: [
        alignedFields([
          ['id', key.id],
          ['API key', key.apiKey],
          ['WABA', key.wabaId],
          ['name', key.name],
          ['scopes', key.scopes.join(', ')],
          ['expires', key.expiresAt ?? 'never'],
        ]),
        '',
        'Keep the key now: it is not shown again.',
      ].join('\n'),
    };
  });
}

function parseScopes(text: string): string[] {
  return text.split(',').map((scope) => scope.trim());
}

function listCommand(): Command {
  const command = new Command('list')
    .description('list the API keys of a WABA')
    .requiredOption('--waba <id>', 'the WABA');
  return adminAction<{ waba: string }>(
    command,
    'key list --waba 900000000000101',
    async ({ tools, options }) => {
      const keys = await listKeys(tools, options.waba);
      return {
        json: keys,
        text: alignedTable(
          ['ID', 'KEY', 'NAME', 'SCOPES', 'STATE', 'CREATED', 'EXPIRES', 'LAST USED'],
          keys.map((key) => [
            key.id,
            `${key.prefix}…${key.lastFour}`,
            key.name,
            key.scopes.join(','),
            key.state,
            key.createdAt,
            key.expiresAt,
            key.lastUsedAt,
          ]),
          `WABA ${options.waba} has no API keys yet; make one with: admin key create --waba ${options.waba}`,
        ),
      };
    },
  );
}

function revokeCommand(): Command {
  const command = new Command('revoke')
    .description('revoke an API key for good; the next request with it returns 401')
    .argument('<id>', 'the id of the key, as key list shows it');
  return adminAction(command, 'key revoke 7', async ({ tools, args }) => {
    const revoked = await revokeKeyAsOperator(tools, args[0] ?? '');
    return {
      json: revoked,
      text: `API key ${revoked.id} is revoked since ${revoked.revokedAt.toISOString()}.`,
    };
  });
}
