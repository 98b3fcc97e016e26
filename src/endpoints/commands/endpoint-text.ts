import { shownCount } from '../../deliveries/shown-count.ts';
import type { AdminOutcome } from '../../platform/cli/admin-action.ts';
import { alignedFields } from '../../platform/cli/aligned-text.ts';
import type { EndpointStatus } from '../endpoints.ts';
import type { Section } from '../setting.ts';
import { settingsOf } from '../settings.ts';

/** An endpoint for operators: its options, its mode and what waits. */
export function describeEndpoint(endpoint: EndpointStatus, notes: string[] = []): AdminOutcome {
  return {
    json: endpoint,
    notes,
    text: alignedFields([
      ['id', endpoint.id],
      ['mode', endpoint.mode],
      ['reason', endpoint.modeReason],
      ['since', endpoint.modeChangedAt],
      ...troubleOf(endpoint),
      ['waiting', waitingText(endpoint.waiting)],
      ['URL', endpoint.url],
      ['WABA', endpoint.wabaId],
      ...rowsOf(endpoint, 'where', 'what'),
      ['own headers', headersText(endpoint.customHeaderNames)],
      ...rowsOf(endpoint, 'signature'),
      ['old secret', untilText(endpoint.previousSecretExpiresAt)],
      ...rowsOf(endpoint, 'order', 'retries', 'limits'),
      ['created', endpoint.createdAt],
      ['updated', endpoint.updatedAt],
    ]),
  };
}

function rowsOf(endpoint: EndpointStatus, ...sections: Section[]): [string, unknown][] {
  return settingsOf(...sections).map(([name, { command }]): [string, unknown] => {
    const value = endpoint[name];
    const shown = value === null ? command.byDefault : (command.show?.(value) ?? value);
    const wanted = name === 'orderScope' ? endpoint.wantedOrderScope : null;
    return [command.label, wanted === null ? shown : `${shown}, wanted: ${wanted}`];
  });
}

function troubleOf({ failingSince, nextProbeAt, probeFailures }: EndpointStatus): [string, unknown][] {
  return [
    ...(failingSince === null ? [] : [['failing since', failingSince] as [string, unknown]]),
    ...(nextProbeAt === null ? [] : [['next probe', nextProbeAt] as [string, unknown]]),
    ...(probeFailures === 0 ? [] : [['probes failed', probeFailures] as [string, unknown]]),
  ];
}

function waitingText(waiting: EndpointStatus['waiting']): string {
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

function headersText(names: string[] | null): string | string[] {
  if (names === null) return 'stored under an encryption key that is missing';
  return names.length === 0 ? 'none' : names;
}

function untilText(until: Date | null): string {
  return until === null ? 'ended' : `signs too until ${until.toISOString()}`;
}
