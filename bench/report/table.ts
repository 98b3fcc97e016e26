import type { Figures } from './figures.ts';

type Column = { title: string; of: (figures: Figures) => string };

const ms = (value: number) => (Number.isFinite(value) ? value.toFixed(value < 100 ? 1 : 0) : '-');
const whole = (value: number) => (Number.isFinite(value) ? value.toFixed(0) : '-');
const cpu = (value: number | undefined) =>
  value === undefined || !Number.isFinite(value) ? '-' : value.toFixed(2);

const NAME: Column = { title: 'scenario', of: ({ scenario }) => scenario };

const LATENCY: readonly Column[] = [
  NAME,
  { title: 'events', of: ({ events }) => whole(events) },
  { title: 'p50', of: ({ latencyMs }) => ms(latencyMs.p50) },
  { title: 'p95', of: ({ latencyMs }) => ms(latencyMs.p95) },
  { title: 'p99', of: ({ latencyMs }) => ms(latencyMs.p99) },
  { title: 'start95', of: ({ leadInLatencyMs }) => ms(leadInLatencyMs.p95) },
  { title: 'ack50', of: ({ acknowledgementMs }) => ms(acknowledgementMs.p50) },
  { title: 'ack95', of: ({ acknowledgementMs }) => ms(acknowledgementMs.p95) },
  { title: 'lag95', of: ({ sendLagMs }) => ms(sendLagMs.p95) },
  { title: 'in/s', of: ({ bodiesPerSecond }) => whole(bodiesPerSecond) },
  { title: 'out/s', of: ({ eventsPerSecond }) => whole(eventsPerSecond) },
  { title: 'backlog', of: ({ backlog }) => whole(backlog) },
  { title: 'miss', of: ({ missing }) => whole(missing) },
  { title: 'dup', of: ({ duplicates }) => whole(duplicates) },
  { title: 'order', of: ({ orderViolations }) => whole(orderViolations) },
  { title: 'no200', of: ({ notAcknowledged }) => whole(notAcknowledged) },
];

const COST: readonly Column[] = [
  NAME,
  ...['api', 'worker', 'postgres', 'temporal', 'minio', 'receiver', 'driver'].map((name) => ({
    title: name,
    of: ({ cpuMsPerEvent }: Figures) => cpu(cpuMsPerEvent[name]),
  })),
  { title: 'others', of: ({ othersCpuShare }) => `${(othersCpuShare * 100).toFixed(0)} %` },
  { title: 'api MiB', of: ({ rssPeakMib }) => whole(rssPeakMib.api ?? Number.NaN) },
  { title: 'worker MiB', of: ({ rssPeakMib }) => whole(rssPeakMib.worker ?? Number.NaN) },
  { title: 'pg MiB', of: ({ postgresPssMib }) => whole(postgresPssMib) },
];

/** Two tables of at most 110 columns, and the notes. */
export function figuresText(all: readonly Figures[]): string {
  const notes = all.flatMap(({ scenario, notes }) => notes.map((note) => `${scenario}: ${note}`));
  return [
    'Latency in ms from the planned sending of the upstream body: p50 p95 p99 until the receiver has the event,',
    'start95 for the beginning of the rate, which the others leave out; ack until the ingress answered 200;',
    "lag the driver's own lateness, which is part of both.",
    ...alignedTable(LATENCY, all),
    '',
    'CPU in ms per event by process; others: share of the machine that other programs took; memory at its peak.',
    ...alignedTable(COST, all),
    ...(notes.length === 0 ? [] : ['', ...notes]),
    ...floorLines(all),
    ...othersLines(all),
    '',
  ].join('\n');
}

function floorLines(all: readonly Figures[]): string[] {
  const rateOf = (name: string) => all.find(({ scenario }) => scenario === name)?.eventsPerSecond;
  const floor = rateOf('floor');
  const flood = rateOf('flood');
  if (floor === undefined || flood === undefined) return [];
  return ['', `The flood reaches ${((100 * flood) / floor).toFixed(0)} % of the floor.`];
}

const OTHERS_LIMIT = 0.1;

function othersLines(all: readonly Figures[]): string[] {
  if (all.every(({ othersCpuShare }) => othersCpuShare <= OTHERS_LIMIT)) return [];
  return ['', 'Other programs took more than a tenth of this machine meanwhile: these figures are too bad.'];
}

/** What a scenario gave, while the next one runs. */
export function summaryLine({ latencyMs, eventsPerSecond }: Figures): string {
  const { p50, p95, p99 } = latencyMs;
  return `  p50 ${ms(p50)} ms, p95 ${ms(p95)} ms, p99 ${ms(p99)} ms, ${whole(eventsPerSecond)} events/s`;
}

const MIN_WIDTH = 5;

/** Names to the left, figures to the right. */
function alignedTable(columns: readonly Column[], all: readonly Figures[]): string[] {
  const rows = [columns.map(({ title }) => title), ...all.map((one) => columns.map(({ of }) => of(one)))];
  const widths = columns.map((_, index) =>
    Math.max(MIN_WIDTH, ...rows.map((row) => row[index]?.length ?? 0)),
  );
  return rows.map((row) =>
    row
      .map((cell, index) =>
        index === 0 ? cell.padEnd(widths[index] ?? 0) : cell.padStart(widths[index] ?? 0),
      )
      .join(' '),
  );
}
