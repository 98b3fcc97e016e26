import { Command, InvalidArgumentError } from 'commander';
import {
  type AdminOutcome,
  adminAction,
  alignedFields,
  alignedTable,
  parseIsoTime,
} from '../../../platform/cli/admin-action.ts';
import type { Config } from '../../../platform/config/config.ts';
import { invalidValue } from '../../../platform/request-input.ts';
import { workflowUrl } from '../../../platform/temporal/client-connection.ts';
import { listWabas } from '../../accounts/accounts.ts';
import type { ApiKeyDetails } from '../api-key-store.ts';
import { createKey, keyOf, limitKey, limitSends, listKeys, revokeKey, wabaOfKey } from '../api-keys.ts';
import { type KeyRequest, keyRequestWorkflowId } from '../key-request-store.ts';
import { decideKeyRequest, keyRequestOf, keyRequestsOf, waitingKeyRequests } from '../key-requests.ts';
import { type GivenSendLimits, KEY_RECIPIENTS, sendLimitTexts } from '../send-limits.ts';

type CreateOptions = SendOptions & {
  waba: string;
  name: string;
  expires?: Date;
  scopes?: string[];
  networks?: string[];
};

/** The options for what a key may send. */
function withSendLimits(command: Command): Command {
  return command
    .option(
      '--max-messages-per-day <number>',
      'how many messages it may send on one UTC day, or "none" for no limit',
      parseMessagesPerDay,
    )
    .option('--recipients <which>', `to whom: ${KEY_RECIPIENTS.join(' or ')} (who wrote within 24 hours)`);
}

/** Commander takes null for a value that is missing. */
function parseMessagesPerDay(text: string): number | 'none' {
  if (text === 'none') return text;
  if (!/^[0-9]+$/.test(text)) throw new InvalidArgumentError('must be a whole number or "none"');
  return Number(text);
}

type SendOptions = { maxMessagesPerDay?: number | 'none'; recipients?: string };

function sendLimitsOf({ maxMessagesPerDay, recipients }: SendOptions): GivenSendLimits {
  return {
    ...(maxMessagesPerDay !== undefined && {
      maxMessagesPerDay: maxMessagesPerDay === 'none' ? null : maxMessagesPerDay,
    }),
    ...(recipients !== undefined && { recipients }),
  };
}

export function keyCommand(): Command {
  return new Command('key')
    .description('API keys of the tenants')
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(limitCommand())
    .addCommand(revokeCommand());
}

function createCommand(): Command {
  const command = new Command('create')
    .description('make an API key for a WABA; it is shown this once and cannot be read back')
    .requiredOption('--waba <id>', 'the WABA that the key acts for')
    .option('--name <name>', 'its purpose', 'made by an operator')
    .option(
      '--expires <ISO time>',
      'when it ends, such as 2027-01-31T12:00:00Z (default: never)',
      parseIsoTime,
    )
    .option(
      '--scopes <scopes>',
      'its scopes, comma separated: read (the default), read_events, send, manage_webhooks, export, erase, graph, graph_manage, graph_query',
      parseList,
    )
    .option(
      '--networks <networks>',
      'from where it may be used, comma separated addresses or CIDR (default: anywhere)',
      parseList,
    );
  withSendLimits(command);
  const example = 'key create --waba 900000000000101 --name "order system" --json';
  return adminAction<CreateOptions>(command, example, async ({ tools, options }) => {
    const { waba, name, expires = null, scopes, networks: allowedNetworks = null } = options;
    const limits = { expiresAt: expires, allowedNetworks, ...(scopes !== undefined && { scopes }) };
    const key = await createKey(tools, waba, { name, ...limits, ...sendLimitsOf(options) });
    const [messages, recipients] = sendLimitTexts(key);
    const isExpired = expires !== null && expires.getTime() <= Date.now();
    return {
      json: key,
      notes: isExpired ? ['the time of --expires has passed: requests with this key return 401.'] : [],
      text: [
        alignedFields([
          ['id', key.id],
          ['API key', key.apiKey],
          ['WABA', key.wabaId],
          ['name', key.name],
          ['scopes', key.scopes.join(', ')],
          ['networks', key.allowedNetworks ?? 'anywhere'],
          ['messages', messages],
          ['recipients', recipients],
          ['expires', key.expiresAt ?? 'never'],
        ]),
        '',
        'Keep the key now: it is not shown again.',
      ].join('\n'),
    };
  });
}

function parseList(text: string): string[] {
  return text.split(',').map((part) => part.trim());
}

type LimitOptions = SendOptions & { networks?: string[] };

function limitCommand(): Command {
  const command = new Command('limit')
    .description(
      'set from where an API key may be used, and limits of its messages; counts from the next request on',
    )
    .argument('<id>', 'the id of the key, as key list shows it')
    .option('--networks <networks>', 'comma separated addresses or CIDR, or "anywhere"', parseList);
  const example = 'key limit 7 --networks 192.0.2.0/24,2001:db8::1';
  return adminAction<LimitOptions>(withSendLimits(command), example, async ({ tools, args, options }) => {
    const { networks } = options;
    const sends = sendLimitsOf(options);
    if (networks === undefined && Object.keys(sends).length === 0) {
      throw invalidValue('Give --networks, --max-messages-per-day or --recipients.');
    }
    const id = args[0] ?? '';
    const wabaId = await wabaOfKey(tools, id);
    const places = networks?.join() === 'anywhere' ? null : networks;
    await tools.database.transaction(async (database) => {
      const inOne = { ...tools, database };
      if (places !== undefined) await limitKey(inOne, wabaId, id, places);
      if (Object.keys(sends).length > 0) await limitSends(inOne, wabaId, id, sends);
    });
    const { allowedNetworks, maxMessagesPerDay, recipients } = await keyOf(tools, wabaId, id);
    const limits = { maxMessagesPerDay, recipients };
    const [most, to] = sendLimitTexts(limits);
    const text = `API key ${id} may be used from ${allowedNetworks?.join(', ') ?? 'anywhere'}; messages: ${most}; recipients: ${to}.`;
    return { json: { id, allowedNetworks, ...limits }, text };
  });
}

function listCommand(): Command {
  const command = new Command('list')
    .description('list the API keys of a WABA, or of all')
    .option('--waba <id>', 'the WABA (default: all)');
  return adminAction<{ waba?: string }>(command, 'key list', async ({ tools, options }) => {
    const { waba } = options;
    const wabaIds = waba === undefined ? await listWabas(tools.database) : [{ wabaId: waba }];
    const keys = await Promise.all(
      wabaIds.map(async ({ wabaId }) =>
        (await listKeys(tools, wabaId)).map((key) => ({ ...(waba === undefined && { wabaId }), ...key })),
      ),
    );
    return describeKeys(keys.flat(), waba);
  });
}

function describeKeys(keys: readonly (ApiKeyDetails & { wabaId?: string })[], waba?: string): AdminOutcome {
  return {
    json: keys,
    text: alignedTable(
      [
        ...(waba === undefined ? ['WABA'] : []),
        ...[
          'ID',
          'KEY',
          'NAME',
          'SCOPES',
          'NETWORKS',
          'MESSAGES',
          'RECIPIENTS',
          'STATE',
          'CREATED',
          'EXPIRES',
          'LAST USED',
        ],
      ],
      keys.map((key) => [
        ...(waba === undefined ? [key.wabaId] : []),
        key.id,
        `${key.prefix}…${key.lastFour}`,
        key.name,
        key.scopes.join(','),
        key.allowedNetworks ?? 'anywhere',
        ...sendLimitTexts(key),
        key.state,
        key.createdAt,
        key.expiresAt,
        key.lastUsedAt,
      ]),
      `${waba === undefined ? 'There are' : `WABA ${waba} has`} no API keys yet; make one with: admin key create --waba ${waba ?? '<id>'}`,
    ),
  };
}

function revokeCommand(): Command {
  const command = new Command('revoke')
    .description('revoke an API key permanently; the next request with it returns 401')
    .argument('<id>', 'the id of the key, as key list shows it');
  return adminAction(command, 'key revoke 7', async ({ tools, args }) => {
    const id = args[0] ?? '';
    const revoked = await revokeKey(tools, await wabaOfKey(tools, id), id);
    return {
      json: revoked,
      text: `API key ${revoked.id} is revoked since ${revoked.revokedAt.toISOString()}.`,
    };
  });
}

export function keyRequestCommand(): Command {
  return new Command('key-request')
    .description('requests of tenants for API keys, which an operator approves or denies')
    .addCommand(listRequestsCommand())
    .addCommand(showCommand())
    .addCommand(approveCommand())
    .addCommand(decideCommand('deny', 'denied', 'refuse a request, or take an approval back'));
}

function listRequestsCommand(): Command {
  const command = new Command('list')
    .description('list the requests that wait for a decision, the oldest first')
    .option('--all', 'the newest requests, whatever their state');
  return adminAction<{ all?: boolean }>(command, 'key-request list', async ({ tools, options }) => {
    const requests = await (options.all ? keyRequestsOf(tools, null) : waitingKeyRequests(tools));
    return {
      json: requests,
      text: alignedTable(
        ['ID', 'STATE', 'TENANT', 'WABA', 'ASKED BY', 'FOR', 'SCOPES', 'ASKED'],
        requests.map((request) => [
          request.id,
          request.state,
          request.businessName,
          request.wabaId,
          request.requester,
          request.purpose,
          request.scopes.join(','),
          request.createdAt,
        ]),
        'No request waits for a decision.',
      ),
    };
  });
}

function showCommand(): Command {
  const command = new Command('show').description('show one request').argument('<id>');
  return adminAction(command, 'key-request show 7', async ({ tools, args }) =>
    describeRequest(tools.config, await keyRequestOf(tools, null, args[0] ?? '')),
  );
}

function approveCommand(): Command {
  const description =
    'let the tenant have the key shown, once, with the limits asked for unless others are given';
  return withSendLimits(decideCommand('approve', 'approved', description));
}

function decideCommand(name: string, state: 'approved' | 'denied', description: string): Command {
  const command = new Command(name)
    .description(description)
    .argument('<id>', 'the id of the request, as key-request list shows it')
    .option('--note <text>', 'a note for the requester', '');
  const example = `key-request ${name} 7 --note "as agreed"`;
  return adminAction<SendOptions & { note: string }>(command, example, async ({ tools, args, options }) => {
    const decision = { state, note: options.note, limits: sendLimitsOf(options) };
    return describeRequest(tools.config, await decideKeyRequest(tools, args[0] ?? '', decision));
  });
}

function describeRequest({ temporal }: Config, request: KeyRequest): AdminOutcome {
  const url = workflowUrl(temporal, keyRequestWorkflowId(request.id));
  const { replacesKeyId, overlapHours } = request;
  const [messages, recipients] = sendLimitTexts(request);
  return {
    json: { ...request, workflowUrl: url },
    text: alignedFields([
      ['id', request.id],
      ['state', request.state],
      ['tenant', request.businessName],
      ['WABA', request.wabaId],
      ['asked by', request.requester],
      ['for', request.purpose],
      ['scopes', request.scopes.join(', ')],
      ['messages', messages],
      ['recipients', recipients],
      ['works', request.validDays === null ? 'until it is revoked' : `${request.validDays} days`],
      ['replaces', replacesKeyId === null ? null : `key ${replacesKeyId}`],
      ['overlap', overlapHours === null ? null : `${overlapHours} hours`],
      ['asked', request.createdAt],
      ['decided by', request.decidedBy],
      ['note', request.note],
      ['revealed by', request.revealedBy],
      ['finished', request.finishedAt],
      ['workflow', url],
    ]),
  };
}
