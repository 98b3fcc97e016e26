import type { EndpointStatus } from '../../accounts/endpoints.ts';
import { shownCount } from '../../accounts/shown-count.ts';
import type { AdminOutcome } from './admin-action.ts';
import { alignedFields } from './aligned-text.ts';

/** An endpoint for operators: its options, its mode and what waits. */
export function describeEndpoint(endpoint: EndpointStatus, notes: string[] = []): AdminOutcome {
  const wanted = endpoint.wantedOrderScope;
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
      ['description', endpoint.description],
      ['events', endpoint.eventTypes ?? 'all'],
      ['numbers', endpoint.phoneNumberIds ?? 'all'],
      ['own headers', headersText(endpoint.customHeaderNames)],
      ['signature', endpoint.signatureProfile],
      ['old secret', untilText(endpoint.previousSecretExpiresAt)],
      ['order scope', wanted === null ? endpoint.orderScope : `${endpoint.orderScope}, wanted: ${wanted}`],
      ['retries after', withUnit(endpoint.retryScheduleSeconds?.join(', '), 's')],
      ['time-out', withUnit(endpoint.timeoutMs, 'ms')],
      ['in flight', endpoint.maxInFlight ?? 'as it copes'],
      [
        'rate limit',
        endpoint.rateLimitPerSecond === null ? 'none' : `${endpoint.rateLimitPerSecond} per second`,
      ],
      ['block limit', endpoint.blockLimitSeconds === 0 ? 'never' : withUnit(endpoint.blockLimitSeconds, 's')],
      ['created', endpoint.createdAt],
      ['updated', endpoint.updatedAt],
    ]),
  };
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

function withUnit(value: string | number | null | undefined, unit: string): string {
  return value === null || value === undefined ? 'the setting' : `${value} ${unit}`;
}
