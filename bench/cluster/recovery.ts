import type { DrillAccount } from '../../test/drill/accounts.ts';
import { expectedAt } from '../../test/drill/check-run.ts';
import type { LoggedArrival } from '../../test/drill/receivers.ts';
import type { Senders } from '../../test/drill/senders.ts';
import type { Fault } from './fault-list.ts';

/** A fault as it happened, until the next one. Unix times in ms. */
export type DoneFault = { fault: Fault; startMs: number; healedMs: number; endMs: number };

type Facts = {
  accounts: readonly DrillAccount[];
  senders: Pick<Senders, 'bodies'>;
  arrivals: readonly LoggedArrival[];
};

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

/** From upstream's first try until a good endpoint has the event: healthy traffic takes less. */
const HEALTHY_MS = 3_000;
/** An order waits for its workflow first, and for a worker that sees to it where Temporal is hurt. */
const HEALTHY_ORDER_MS = 6_000;
/** What was sent so long before the end of a fault may still be on its way. */
export const LONGEST_HEALTHY_MS = HEALTHY_ORDER_MS;

/**
 * How traffic to good endpoints fared: `backMs` after the fault began, everything that upstream sent from then on
 * arrived in time. What was under way before may take longer: `slowestMs` has it.
 */
export function recoveryOf(
  { startMs, endMs }: DoneFault,
  { accounts, senders, arrivals }: Facts,
): { events: number; backMs: number; slowestMs: number; late: string[] } {
  const takenMs = new Map<string, number>();
  for (const { endpoint, content, accepted, arrivedMs } of arrivals) {
    const key = `${endpoint} ${content?.identity}`;
    if (accepted) takenMs.set(key, Math.min(arrivedMs, takenMs.get(key) ?? Number.POSITIVE_INFINITY));
  }
  let events = 0;
  let backMs = 0;
  let slowestMs = 0;
  const late: string[] = [];
  for (const { wabaId, endpoints } of accounts) {
    const bodies = senders.bodies.filter(
      (body) => body.wabaId === wabaId && body.firstSentMs >= startMs && body.firstSentMs < endMs,
    );
    for (const endpoint of endpoints.filter(({ kind }) => kind === 'good')) {
      for (const body of bodies) {
        for (const { identity, eventType } of expectedAt(endpoint, [body])) {
          const atMs = takenMs.get(`${endpoint.index} ${identity}`) ?? Number.POSITIVE_INFINITY;
          events += 1;
          slowestMs = Math.max(slowestMs, atMs - body.firstSentMs);
          if (atMs - body.firstSentMs <= (eventType === 'order' ? HEALTHY_ORDER_MS : HEALTHY_MS)) continue;
          backMs = Math.max(backMs, body.firstSentMs - startMs);
          const [sent, took] = [body.firstSentMs - startMs, atMs - body.firstSentMs];
          late.push(
            `endpoint ${endpoint.index}, ${identity}: sent after ${seconds(sent)}, took ${seconds(took)}`,
          );
        }
      }
    }
  }
  return { events, backMs, slowestMs, late };
}
