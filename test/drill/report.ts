import type { DrillResult } from './drill-result.ts';

const MAX_SHOWN = 20;

/** The result for a person, with the first offenders of every sort. */
export function reportOf(result: DrillResult): string {
  const { counts, seconds, offences } = result;
  const lines = [
    '',
    `Zero-loss drill, seed ${result.seed}: ${result.ok ? 'passed' : 'FAILED'}`,
    `  kills ${counts.kills}, pauses ${counts.pauses}, Temporal away beside them ${counts.beside}, parts that ended by themselves ${counts.crashes}`,
    ...Object.entries(result.killsByTarget).map(([name, count]) => `    ${name}: ${count}`),
    `  bodies sent ${counts.bodiesSent}, acknowledged ${counts.bodiesAcknowledged}, sent again after no 200 ${counts.bodiesSentAgain}, repeated after 200 ${counts.bodiesRepeated}`,
    `  events acknowledged ${counts.eventsAcknowledged}, deliveries expected ${counts.deliveriesExpected}`,
    `  webhooks arrived ${counts.arrivals}, taken ${counts.taken}`,
    `  answers: ${pairs(counts.answers)}`,
    `  duplicates ${counts.duplicates}${counts.duplicates === 0 ? '' : `: ${pairs(counts.duplicatesByReason)}`}`,
    `  lost ${counts.lost}, order violations ${counts.orderViolations}, altered ${counts.altered}, doubled ${counts.doubled}, misdirected ${counts.misdirected}`,
    `  at the end missing ${counts.missingAtTheEnd}, rows left in the queue ${counts.openDeliveriesAtTheEnd}`,
    `  seconds: start ${seconds.start}, under fire ${seconds.storm}, Temporal away ${seconds.temporalAway}, until the last delivery ${seconds.drain}`,
    ...Object.entries(offences).flatMap(([name, list]) => listed(name, list)),
    ...listed('unexplained duplicates', result.unexplainedDuplicates),
  ];
  return `${lines.join('\n')}\n`;
}

function listed(name: string, list: readonly string[]): string[] {
  if (list.length === 0) return [];
  const more = list.length > MAX_SHOWN ? [`    and ${list.length - MAX_SHOWN} more`] : [];
  return [`  ${name}:`, ...list.slice(0, MAX_SHOWN).map((line) => `    ${line}`), ...more];
}

function pairs(counts: Record<string, number>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
}
