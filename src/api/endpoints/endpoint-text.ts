import {
  type InstallationSettings,
  installationSettings,
  type Section,
  textOf,
} from '../../engine/endpoint/setting.ts';
import { type AnySetting, settingsOf } from '../../engine/endpoint/settings.ts';
import { shownCount } from '../../engine/queue/waiting.ts';
import { certificateRows } from '../../features/endpoints/commands/certificate-commands.ts';
import type { EndpointMove } from '../../features/endpoints/endpoint-headers.ts';
import type { EndpointStatus, EndpointView } from '../../features/endpoints/endpoints.ts';
import type { TestEventResult } from '../../features/endpoints/test-event.ts';
import { type AdminOutcome, alignedFields, alignedTable } from '../../platform/cli/admin-action.ts';
import type { Config } from '../../platform/config/config.ts';
import { workflowUrl } from '../../platform/temporal/client-connection.ts';

/** Without a WABA: those of all. */
export function describeEndpoints(endpoints: readonly EndpointStatus[], wabaId?: string): AdminOutcome {
  return {
    json: endpoints,
    text: alignedTable(
      [...(wabaId === undefined ? ['WABA'] : []), 'ID', 'MODE', 'PENDING', 'EVENTS', 'URL', 'DESCRIPTION'],
      endpoints.map(({ id, mode, waiting, eventTypes, url, description, ...one }) => [
        ...(wabaId === undefined ? [one.wabaId] : []),
        ...[id, mode, shownCount(waiting), eventTypes ?? 'all', url, description],
      ]),
      `${wabaId === undefined ? 'There are' : `WABA ${wabaId} has`} no webhook endpoints yet; add one with: admin endpoint add --waba ${wabaId ?? '<id>'} --url <url>`,
    ),
  };
}

/** The time until which the secret or key before the present one signs. */
export function untilText(until: Date | null): string {
  return until === null ? 'ended' : `signs too until ${until.toISOString()}`;
}

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
    return [command.label, shown];
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

function troubleOf(endpoint: EndpointStatus): [string, unknown][] {
  const { failingSince, recoveringSince, nextProbeAt, probeFailures } = endpoint;
  return [
    ...(failingSince === null ? [] : [['failing since', failingSince] as [string, unknown]]),
    ...(recoveringSince === null ? [] : [['recovering since', recoveringSince] as [string, unknown]]),
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

export function describeTestEvent(
  { temporal }: Config,
  endpointUrl: string,
  { startError, ...result }: TestEventResult,
): AdminOutcome {
  const { workflowId } = result;
  const url = workflowId === null ? null : workflowUrl(temporal, workflowId);
  const notes =
    startError !== null
      ? [
          `Temporal at ${temporal.address} did not take the workflow (${firstLine(startError)}); ` +
            `the event is queued; the worker sends it when Temporal is up again: admin find ${result.eventId}`,
        ]
      : result.state === 'pending'
        ? [`there is no outcome yet; is a worker running? Look again with: admin find ${result.eventId}`]
        : [];
  return {
    json: { ...result, workflowUrl: url },
    notes,
    text: alignedFields([
      ['state', result.state],
      ['URL', endpointUrl],
      ['status', result.statusCode],
      ['error', result.error],
      ['duration', result.durationMs === null ? null : `${result.durationMs.toFixed(1)} ms`],
      ['eventId', result.eventId],
      ['deliveryId', result.deliveryId],
      ['workflow', url],
    ]),
  };
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? '';
}

export function appSecretRow({ appSecret }: { appSecret: string | null }): [string, string][] {
  return appSecret === null ? [] : [['app secret', appSecret]];
}

type Move = EndpointMove & { sameUrlEndpointIds: string[]; appSecret: string | null };

export function moveMembers({
  droppedHeaderNames,
  secretRotationAdvised,
  sameUrlEndpointIds,
  appSecret,
}: Move) {
  return { droppedHeaderNames, secretRotationAdvised, sameUrlEndpointIds, appSecret };
}

export function moveNotes(id: string, { droppedHeaderNames, secretRotationAdvised }: EndpointMove): string[] {
  const names = droppedHeaderNames.join(', ');
  const dropped = `the URL leads to another server, so these custom headers were dropped: ${names}; give them again with --header.`;
  const rotate = `the previous server still knows the signing secret: "endpoint rotate-secret ${id}" makes a new one.`;
  return [...(names === '' ? [] : [dropped]), ...(secretRotationAdvised ? [rotate] : [])];
}

export function endpointJson<View extends EndpointView>({ wabaId, version, probeFailures, ...shown }: View) {
  return shown;
}
