import { type DiffLine, diffBodies } from './diff.ts';
import type { Forwarded } from './forwarder.ts';
import type { Output } from './output.ts';
import { printable } from './output.ts';

/** An attempt in one line: time, event, status and latency. */
export function forwardedLine(forwarded: Forwarded, { style }: Pick<Output, 'style'>): string {
  const { event, attempt, status, error, durationMs, isDelivered, responseBody } = forwarded;
  const shown = status === null ? (error ?? '') : String(status);
  const parts = [
    style('dim', new Date().toLocaleTimeString('en-GB')),
    style('cyan', event.eventType.padEnd(11)),
    printable(event.eventId),
    style('dim', `#${event.sequence}`),
    ...(attempt > 1 ? [style('yellow', `attempt ${attempt}`)] : []),
    style(isDelivered ? 'green' : 'red', shown),
    style('dim', `${durationMs < 10 ? durationMs.toFixed(1) : Math.round(durationMs)} ms`),
  ];
  const reason =
    isDelivered || responseBody.trim() === '' ? '' : `\n         ${printable(responseBody.trim())}`;
  return parts.join(' ') + reason;
}

/** How the two last deliveries of one `eventId` differ; null when no two are kept. */
function diffOfLast(
  attempts: readonly Forwarded[],
): { before: Forwarded; after: Forwarded; lines: DiffLine[] } | null {
  for (const after of attempts.toReversed()) {
    const before = attempts.findLast(
      (one) =>
        one.event.eventId === after.event.eventId &&
        one !== after &&
        attempts.indexOf(one) < attempts.indexOf(after),
    );
    if (before !== undefined) return { before, after, lines: diffBodies(before.body, after.body) };
  }
  return null;
}

/** That difference for a terminal. */
export function diffText(attempts: readonly Forwarded[], { style }: Pick<Output, 'style'>): string {
  const found = diffOfLast(attempts);
  if (found === null) return 'No event was forwarded twice yet, and no two share an eventId.';
  const { before, after, lines } = found;
  const name = ({ event, attempt }: Forwarded) => `${event.id} attempt ${attempt}`;
  const head = `${printable(after.event.eventId)}: ${name(before)} and ${name(after)}`;
  if (before.body.equals(after.body)) return `${head}: the bodies are the same, byte for byte.`;
  const shown = lines.map(({ kind, text }) => {
    if (kind === 'same') return `  ${printable(text)}`;
    return kind === 'added' ? style('green', `+ ${printable(text)}`) : style('red', `- ${printable(text)}`);
  });
  return [head, ...shown].join('\n');
}
