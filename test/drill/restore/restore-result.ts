import type { RestoreOffences } from './check-restore.ts';

export type RestoreOptions = {
  /** How far PostgreSQL is taken back. */
  backMinutes: number;
  /** Load before that moment, and before each other restore. */
  betweenSeconds: number;
  /** `archive_timeout`. */
  archiveSeconds: number;
  eventsPerSecond: number;
  sendsPerSecond: number;
  endpoints: number;
  seed: number;
  /** One of so many forgotten bodies is sent again by upstream. */
  repeatOneOf: number;
};

/** One restore, measured from the moment of the loss. Times in seconds. */
export type Restored = {
  name: string;
  /** Data of how long is lost. */
  rpo: number;
  seconds: {
    /** The part answers again. */
    restored: number;
    /** `reconcile --fix` has ended. */
    reconciled: number;
    /** Upstream gets 200 again; 0: it never got anything else. */
    upstream: number;
    /** An endpoint gets something again that came in later. */
    delivered: number;
    /** What had waited is delivered. */
    current: number;
  };
  /** Acknowledged and forgotten with the restore. */
  forgotten: { bodies: number; events: number; repeated: number };
  /** What the look before the fix found. */
  found: Record<string, number>;
  /** What `--fix` could not fix. */
  left: string[];
};

export type RestoreResult = {
  ok: boolean;
  options: RestoreOptions;
  startedAt: string;
  restores: Restored[];
  counts: {
    bodies: number;
    events: number;
    taken: number;
    /** Taken again after a restore, under the same eventId. */
    takenAgain: number;
    sends: number;
    missingAtTheEnd: number;
    openDeliveriesAtTheEnd: number;
    openWorkAtTheEnd: number;
  };
  offences: RestoreOffences & { sentTwice: string[]; neverSent: string[]; left: string[] };
  /** Of the machine over a minute, at the beginning and at the end; the drill is part of it. */
  loadAverage: [number, number];
};

const MAX_SHOWN = 10;

/** The result for a person. */
export function reportOf({ ok, options, restores, counts, offences, loadAverage }: RestoreResult): string {
  const head = [
    'restore',
    'RPO',
    'restored',
    'reconciled',
    'upstream 200',
    'delivered',
    'RTO (current)',
    'forgotten',
  ];
  const rows = restores.map(({ name, rpo, seconds, forgotten }) => [
    ...[name, `${rpo} s`, `${seconds.restored} s`, `${seconds.reconciled} s`],
    seconds.upstream === 0 ? 'always' : `${seconds.upstream} s`,
    ...[`${seconds.delivered} s`, `${seconds.current} s`],
    `${forgotten.bodies} bodies, ${forgotten.events} events`,
  ]);
  return [
    '',
    `Restore drill, seed ${options.seed}: ${ok ? 'passed' : 'FAILED'}`,
    `${options.eventsPerSecond} events and ${options.sendsPerSecond} sends a second; load average ${loadAverage.join(' to ')}`,
    '',
    ...[head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`),
    '',
    ...restores.flatMap(({ name, found, forgotten }) => [
      `${name}: upstream repeated ${forgotten.repeated} of the forgotten bodies; reconcile found`,
      ...Object.entries(found).map(([kind, count]) => `  ${kind} ${count}`),
    ]),
    `bodies ${counts.bodies}, events ${counts.events}, taken ${counts.taken}, taken again under the same eventId ${counts.takenAgain}, sends ${counts.sends}`,
    `at the end missing ${counts.missingAtTheEnd}, rows in the queue ${counts.openDeliveriesAtTheEnd}, other open work ${counts.openWorkAtTheEnd}`,
    ...Object.entries(offences).flatMap(([name, list]) =>
      list.length === 0
        ? []
        : [`${name}: ${list.length}`, ...list.slice(0, MAX_SHOWN).map((line) => `  ${line}`)],
    ),
    '',
  ].join('\n');
}
