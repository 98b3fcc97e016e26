import { Gauge, type Registry } from '@prometheus-io/client';
import type { QueueState } from '../../deliveries/queue/states.ts';
import type { SystemFigures } from './system-figures.ts';

const DELIVERY_STATES: readonly QueueState[] = [
  'queued',
  'unreleased',
  'suspended',
  'due',
  'claimed',
  'retrying',
];
const ENDPOINT_MODES = ['open', 'probing', 'paused', 'disabled'];

/** Shows figures from now on; with null the gauges have no value, because the last one would pass for a fresh one. */
export type ShowFigures = (figures: SystemFigures | null) => void;

/** The gauges of what PostgreSQL knows; they are about all processes together. */
export function makeSystemGauges(registry: Registry): ShowFigures {
  const up = plainGauge(
    registry,
    'database_up',
    '1 when PostgreSQL told the figures of this scrape, otherwise 0.',
  );
  const open = labelledGauge(
    registry,
    'deliveries_open',
    'Deliveries not done, by state of the queue.',
    'state',
  );
  const endpoints = labelledGauge(registry, 'endpoints', 'Webhook endpoints by mode.', 'mode');
  const secrets = labelledGauge(
    registry,
    'stored_secrets',
    'Stored secrets by the id of the key that encrypted them.',
    'key',
  );
  const housekeeping = labelledGauge(
    registry,
    'housekeeping_failing_seconds',
    'For how long each step of housekeeping has failed; 0: its last turn went well.',
    'step',
  );
  const plain = [
    ['oldestOpenSeconds', 'delivery_oldest_open_seconds', 'Age of the oldest delivery that is not done.'],
    ['oldestDueSeconds', 'delivery_oldest_due_seconds', 'Age of the oldest delivery that may go out now.'],
    ['inboxBacklog', 'inbox_backlog', 'Upstream bodies that are not taken in yet.'],
    ['inboxOldestSeconds', 'inbox_oldest_seconds', 'Age of the oldest of them.'],
    ['inboxFailed', 'inbox_failed', 'Upstream bodies that could not be taken in.'],
    ['inboxAwaitingNumber', 'inbox_awaiting_number', 'Upstream bodies that wait for a phone number.'],
    ['inboxAwaitingNumberSeconds', 'inbox_awaiting_number_seconds', 'Since when the first of them waits.'],
  ] as const;
  const gauges = plain.map(([key, name, help]) => ({ key, gauge: plainGauge(registry, name, help) }));
  return (figures) => {
    up.set(figures === null ? 0 : 1);
    for (const state of DELIVERY_STATES) show(open, figures && (figures.openDeliveries[state] ?? 0), state);
    for (const mode of ENDPOINT_MODES) show(endpoints, figures && (figures.endpoints[mode] ?? 0), mode);
    // A key that nothing needs any more must not stay in sight.
    secrets.reset();
    for (const [key, count] of Object.entries(figures?.storedSecrets ?? {})) show(secrets, count, key);
    housekeeping.reset();
    for (const [step, seconds] of Object.entries(figures?.housekeepingFailingSeconds ?? {}))
      housekeeping.labels(step).set(seconds);
    for (const { key, gauge } of gauges) {
      if (figures === null) gauge.remove();
      else gauge.set(figures[key]);
    }
  };
}

function show(gauge: Gauge<string>, value: number | null, label: string): void {
  if (value === null) gauge.remove(label);
  else gauge.labels(label).set(value);
}

function plainGauge(registry: Registry, name: string, help: string): Gauge {
  return new Gauge({ name: `heliograph_${name}`, help, registers: [registry] });
}

function labelledGauge(registry: Registry, name: string, help: string, label: string): Gauge<string> {
  return new Gauge({ name: `heliograph_${name}`, help, labelNames: [label], registers: [registry] });
}
