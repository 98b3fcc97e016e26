import { Command, Option } from 'commander';
import {
  type AdminOutcome,
  adminAction,
  alignedFields,
  alignedTable,
} from '../../platform/cli/admin-action.ts';
import type { Config } from '../../platform/config/config.ts';
import { invalidValue } from '../../platform/request-input.ts';
import { shownCount } from '../../queue/waiting.ts';
import type { EndpointMove } from '../endpoint-headers.ts';
import { enableEndpoint, holdEndpoint } from '../endpoint-modes.ts';
import { optionRulesOf } from '../endpoint-options.ts';
import {
  addEndpoint,
  type EndpointStatus,
  endpointForOperator,
  endpointStatus,
  endpointsOf,
  sameUrlNotice,
  updateEndpoint,
} from '../endpoints.ts';
import { type InstallationSettings, installationSettings, type Section, textOf } from '../setting.ts';
import { type AnySetting, settingsOf } from '../settings.ts';
import { certificateRows, endpointCertificateCommand } from './certificate-commands.ts';
import { endpointDeleteCommand } from './delete-command.ts';
import {
  type EndpointCommandOptions,
  givenEndpointOptions,
  withEndpointOptions,
} from './endpoint-options.ts';
import {
  endpointRotateSecretCommand,
  endpointRotateSigningKeyCommand,
  untilText,
} from './secret-commands.ts';
import { endpointTargetsCommand } from './target-commands.ts';

/** `admin endpoint …` */
export function endpointCommand(): Command {
  return new Command('endpoint')
    .description("tenants' servers that receive webhooks")
    .addCommand(endpointAddCommand())
    .addCommand(listCommand())
    .addCommand(showCommand())
    .addCommand(endpointUpdateCommand())
    .addCommand(endpointPauseCommand())
    .addCommand(endpointDisableCommand())
    .addCommand(endpointEnableCommand())
    .addCommand(endpointRotateSecretCommand())
    .addCommand(endpointRotateSigningKeyCommand())
    .addCommand(endpointCertificateCommand())
    .addCommand(endpointDeleteCommand())
    .addCommand(endpointTargetsCommand());
}

function listCommand(): Command {
  const command = new Command('list')
    .description('list the webhook endpoints of a WABA')
    .requiredOption('--waba <id>', 'the WABA');
  const example = 'endpoint list --waba 900000000000101';
  return adminAction<{ waba: string }>(command, example, async ({ tools, options }) => {
    const endpoints = await endpointsOf(tools, options.waba);
    return {
      json: endpoints,
      text: alignedTable(
        ['ID', 'MODE', 'PENDING', 'EVENTS', 'URL', 'DESCRIPTION'],
        endpoints.map(({ id, mode, waiting, eventTypes, url, description }) => [
          id,
          mode,
          shownCount(waiting),
          eventTypes ?? 'all',
          url,
          description,
        ]),
        `WABA ${options.waba} has no webhook endpoints yet; add one with: admin endpoint add --waba ${options.waba} --url <url>`,
      ),
    };
  });
}

function showCommand(): Command {
  const command = new Command('show')
    .description('show a webhook endpoint, its mode and its pending deliveries')
    .argument('<id>');
  return adminAction(command, 'endpoint show 3', async ({ tools, args }) => {
    const { id, wabaId } = await endpointForOperator(tools, args[0] ?? '');
    return describeEndpoint(tools.config, await endpointStatus(tools, wabaId, id));
  });
}

type AddOptions = EndpointCommandOptions & { waba: string; url: string };

/** `admin endpoint add` */
function endpointAddCommand(): Command {
  const command = new Command('add')
    .description('add a webhook endpoint; prints the secret that its signatures are verified with')
    .requiredOption('--waba <id>', 'the WABA whose events it receives')
    .requiredOption('--url <url>', 'where they are sent, https:// unless the settings allow http');
  const example = 'endpoint add --waba 900000000000101 --url https://shop.example/webhooks --json';
  return adminAction<AddOptions>(withEndpointOptions(command), example, async ({ tools, options }) => {
    const { waba, url } = options;
    const given = { ...(await givenEndpointOptions(options)), url };
    const endpoint = await addEndpoint({ ...tools, ...optionRulesOf(tools) }, waba, given);
    const notice = sameUrlNotice(endpoint);
    return {
      json: endpoint,
      notes: notice === null ? [] : [notice],
      text: alignedFields([
        ['id', endpoint.id],
        ['secret', endpoint.secret],
        ...appSecretRow(endpoint),
        ['URL', endpoint.url],
        ['WABA', endpoint.wabaId],
        ['events', endpoint.eventTypes ?? 'all'],
      ]),
    };
  });
}

function appSecretRow({ appSecret }: { appSecret: string | null }): [string, string][] {
  return appSecret === null ? [] : [['app secret', appSecret]];
}

type UpdateOptions = EndpointCommandOptions & { url?: string; removeHeader?: string[]; clearHeaders?: true };

/** `admin endpoint update` */
function endpointUpdateCommand(): Command {
  const command = new Command('update')
    .description('change what is given of a webhook endpoint; "default" as a value goes back to the default')
    .argument('<id>')
    .option(
      '--url <url>',
      'where its webhooks are sent, pending ones included; custom headers go to another host only if given again',
    );
  withEndpointOptions(command)
    .option('--remove-header <name...>', 'take these headers of its own away')
    .option('--clear-headers', 'take all headers of its own away');
  const example = 'endpoint update 3 --events message,status --timeout-ms 5000';
  return adminAction<UpdateOptions>(command, example, async ({ tools, args, options }) => {
    const { id, wabaId } = await endpointForOperator(tools, args[0] ?? '');
    const { url, removeHeader = [], clearHeaders } = options;
    const { customHeaders, ...given } = await givenEndpointOptions(options);
    const removed = Object.fromEntries(removeHeader.map((name) => [name, null]));
    const headers = { ...removed, ...customHeaders };
    const namesHeaders = Object.keys(headers).length > 0;
    if (clearHeaders && namesHeaders) throw invalidValue('--clear-headers goes with no other header option.');
    const patch = {
      ...given,
      ...(url !== undefined && { url }),
      ...(namesHeaders && { customHeaders: headers }),
      ...(clearHeaders && { customHeaders: null }),
    };
    if (Object.keys(patch).length === 0) throw invalidValue('Say what is to be changed; see --help.');
    const move = await updateEndpoint({ ...tools, ...optionRulesOf(tools) }, wabaId, id, patch);
    const changed = await endpointStatus(tools, wabaId, id);
    const note = `the order scope becomes "${changed.wantedOrderScope}" once nothing of the present one is open, or while it is paused.`;
    const notes = changed.wantedOrderScope === null ? [] : [note];
    const { droppedHeaderNames, secretRotationAdvised, sameUrlEndpointIds, appSecret } = move;
    const sameUrl = url === undefined ? null : sameUrlNotice(move);
    const { json, ...described } = describeEndpoint(tools.config, changed, [
      ...notes,
      ...moveNotes(id, move),
      ...(sameUrl === null ? [] : [sameUrl]),
      ...appSecretRow(move).map(([name, secret]) => `${name}, shown this once: ${secret}`),
    ]);
    const besides = { droppedHeaderNames, secretRotationAdvised, sameUrlEndpointIds, appSecret };
    return { ...described, json: { ...json, ...besides } };
  });
}

function moveNotes(id: string, { droppedHeaderNames, secretRotationAdvised }: EndpointMove): string[] {
  const names = droppedHeaderNames.join(', ');
  const dropped = `the URL leads to another server, so these custom headers were dropped: ${names}; give them again with --header.`;
  const rotate = `the server before still knows the signing secret: "endpoint rotate-secret ${id}" makes a new one.`;
  return [...(names === '' ? [] : [dropped]), ...(secretRotationAdvised ? [rotate] : [])];
}

const BY = 'an operator';

/** `admin endpoint pause` */
function endpointPauseCommand(): Command {
  return holdCommand('pause', 'let its events wait for a while; none is lost', 'paused');
}

/** `admin endpoint disable` */
function endpointDisableCommand(): Command {
  return holdCommand(
    'disable',
    'switch it off until it is enabled; its events wait, none is lost',
    'disabled',
  );
}

function holdCommand(name: string, description: string, mode: 'paused' | 'disabled'): Command {
  const command = new Command(name)
    .description(description)
    .argument('<id>')
    .option('--reason <text>', 'the reason that operators and tenants see', `${mode} by ${BY}`);
  return adminAction<{ reason: string }>(command, `endpoint ${name} 3`, async ({ tools, args, options }) => {
    const { id, wabaId } = await endpointForOperator(tools, args[0] ?? '');
    await holdEndpoint(tools, wabaId, { id, mode, reason: options.reason });
    return describeEndpoint(tools.config, await endpointStatus(tools, wabaId, id));
  });
}

/** `admin endpoint enable` */
function endpointEnableCommand(): Command {
  const command = new Command('enable')
    .description('send its events (again)')
    .argument('<id>')
    .addOption(
      new Option(
        '--waiting <what>',
        'what becomes of pending events: send them first, in order, or drop them for good; needed when there are any',
      ).choices(['send', 'drop']),
    );
  return adminAction<{ waiting?: 'send' | 'drop' }>(
    command,
    'endpoint enable 3 --waiting send',
    async ({ tools, args, options }) => {
      const { id, wabaId } = await endpointForOperator(tools, args[0] ?? '');
      const { waiting = null } = options;
      const { dropped } = await enableEndpoint(tools, wabaId, { id, waiting, by: BY });
      const { json, ...shown } = describeEndpoint(
        tools.config,
        await endpointStatus(tools, wabaId, id),
        waiting === 'drop' ? [`${dropped.toLocaleString('en-US')} deliveries were dropped.`] : [],
      );
      return { ...shown, json: { ...json, dropped } };
    },
  );
}

/** An endpoint for operators: its options, its mode and what waits. */
export function describeEndpoint(
  config: Config,
  endpoint: EndpointStatus,
  notes: string[] = [],
): AdminOutcome {
  const defaults = installationSettings(config);
  return {
    json: endpoint,
    notes,
    text: alignedFields([
      ['id', endpoint.id],
      ['mode', endpoint.mode],
      ['reason', endpoint.modeReason],
      ['since', endpoint.modeChangedAt],
      ...troubleOf(endpoint),
      ['pending', pendingText(endpoint.waiting)],
      ['URL', endpoint.url],
      ['WABA', endpoint.wabaId],
      ...rowsOf(endpoint, defaults, 'where', 'what'),
      ['custom headers', headersText(endpoint.customHeaderNames)],
      ...rowsOf(endpoint, defaults, 'signature'),
      ['old secret', untilText(endpoint.previousSecretExpiresAt)],
      ...publicKeyRows(endpoint.publicKeys),
      ...certificateRows(endpoint.clientCertificate),
      ...rowsOf(endpoint, defaults, 'order', 'retries', 'limits'),
      ['created', endpoint.createdAt],
      ['updated', endpoint.updatedAt],
    ]),
  };
}

function rowsOf(
  endpoint: EndpointStatus,
  defaults: InstallationSettings,
  ...sections: Section[]
): [string, unknown][] {
  return settingsOf(...sections).map(([name, { command, portal }]): [string, unknown] => {
    const value = endpoint[name];
    const shown = value === null ? defaultOf(command, portal, defaults) : (command.show?.(value) ?? value);
    const wanted = name === 'orderScope' ? endpoint.wantedOrderScope : null;
    return [command.label, wanted === null ? shown : `${shown}, wanted: ${wanted}`];
  });
}

/** The value that holds without the setting, in the words of the portal unless the command has its own. */
function defaultOf(
  command: AnySetting['command'],
  portal: AnySetting['portal'],
  defaults: InstallationSettings,
): string | null {
  if (command.byDefault !== undefined) return command.byDefault;
  const text = textOf(portal.byDefault, defaults);
  return text === '' ? null : `${text} (default)`;
}

function troubleOf({ failingSince, nextProbeAt, probeFailures }: EndpointStatus): [string, unknown][] {
  return [
    ...(failingSince === null ? [] : [['failing since', failingSince] as [string, unknown]]),
    ...(nextProbeAt === null ? [] : [['next probe', nextProbeAt] as [string, unknown]]),
    ...(probeFailures === 0 ? [] : [['probes failed', probeFailures] as [string, unknown]]),
  ];
}

function pendingText(waiting: EndpointStatus['waiting']): string {
  if (waiting.count === 0) return 'nothing';
  const states = (['due', 'queued', 'unreleased', 'suspended', 'retrying', 'claimed'] as const).flatMap(
    (state) => (waiting[state] === 0 ? [] : [`${waiting[state].toLocaleString('en-US')} ${state}`]),
  );
  const age = waiting.oldestMs === null ? '' : `; the oldest for ${durationText(waiting.oldestMs)}`;
  return `${shownCount(waiting)} (${waiting.more ? 'at least ' : ''}${states.join(', ')})${age}`;
}

function durationText(ms: number): string {
  const seconds = Math.round(Math.max(ms, 0) / 1000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} days`;
}

function publicKeyRows(keys: EndpointStatus['publicKeys']): [string, unknown][] {
  if (keys === null) return [['public key', 'of a key stored under an encryption key that is missing']];
  return keys.map(({ publicKey, expiresAt }) => [
    expiresAt === null ? 'public key' : 'old public key',
    expiresAt === null ? publicKey : `${publicKey}, ${untilText(expiresAt)}`,
  ]);
}

function headersText(names: string[] | null): string | string[] {
  if (names === null) return 'stored under an encryption key that is missing';
  return names.length === 0 ? 'none' : names;
}
