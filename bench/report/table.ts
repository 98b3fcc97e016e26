import type { Figures } from './figures.ts';
import { type JudgedTarget, judgeTargets } from './targets.ts';

export type Column<Row = Figures> = { title: string; of: (row: Row) => string };

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
  { title: 'sec95', of: ({ worstSecondP95Ms }) => ms(worstSecondP95Ms) },
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
  ...['api', 'worker', 'all', 'peer', 'postgres', 'temporal', 'minio', 'receiver', 'driver'].map((name) => ({
    title: name,
    of: ({ cpuMsPerEvent }: Figures) => cpu(cpuMsPerEvent[name]),
  })),
  { title: 'others', of: ({ othersCpuShare }) => `${(othersCpuShare * 100).toFixed(0)} %` },
  { title: 'rest MiB', of: ({ productAtRestMib }) => whole(productAtRestMib) },
  { title: 'peak MiB', of: ({ productPeakMib }) => whole(productPeakMib) },
  { title: 'pg MiB', of: ({ postgresPssMib }) => whole(postgresPssMib) },
];

/** Tables of at most 110 columns, and the notes. */
export function figuresText(all: readonly Figures[]): string {
  const notes = all.flatMap(({ scenario, notes }) => notes.map((note) => `${scenario}: ${note}`));
  return [
    'Latency in ms from the planned sending of the upstream body: p50 p95 p99 until the receiver has the event,',
    'sec95 the p95 of its worst second; ack until the ingress answered 200;',
    "lag the driver's own lateness, which is part of all.",
    ...alignedTable(LATENCY, all),
    '',
    'CPU in ms per event by process; others: share of the machine that other programs took; memory of API and',
    'workers together before the first body and at its peak, and of PostgreSQL.',
    ...alignedTable(COST, all),
    ...(notes.length === 0 ? [] : ['', ...notes]),
    ...targetLines(all),
    ...othersLines(all),
    '',
  ].join('\n');
}

const TARGET: readonly Column<JudgedTarget>[] = [
  { title: 'target', of: ({ about }) => about },
  { title: 'wanted', of: ({ wanted }) => wanted },
  { title: 'measured', of: ({ measured }) => measured },
  { title: '', of: ({ isMet }) => (isMet ? 'met' : 'missed') },
];

function targetLines(all: readonly Figures[]): string[] {
  const targets = judgeTargets(all);
  return targets.length === 0 ? [] : ['', ...alignedTable(TARGET, targets)];
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
export function alignedTable<Row>(columns: readonly Column<Row>[], all: readonly Row[]): string[] {
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
