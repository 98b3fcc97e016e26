import type { DrillAccount } from '../accounts.ts';
import { checkRun, type Offences } from '../check-run.ts';
import type { LoggedArrival } from '../receivers.ts';
import type { SentBody } from '../senders.ts';

/** What a restored database does not know: from its newest commit until the processes run again. Unix times in ms. */
export type Gap = { fromMs: number; toMs: number };

type Facts = {
  accounts: readonly DrillAccount[];
  bodies: readonly SentBody[];
  arrivals: readonly LoggedArrival[];
  gaps: readonly Gap[];
};

/** Those of a run, over what the database remembers, and two that hold over everything; a sentence each. */
export type RestoreOffences = Offences & {
  /** One upstream event under several event ids. */
  renamed: string[];
  /** Two events of one key under the same X-Service-Sequence. */
  renumbered: string[];
};

/** Whether a body was acknowledged and then forgotten with the restore, unless it was sent again later. */
export function isForgotten({ acknowledgedMs }: SentBody, gaps: readonly Gap[]): boolean {
  return acknowledgedMs !== null && gaps.some((gap) => isWithin(acknowledgedMs, gap));
}

function isWithin(atMs: number, { fromMs, toMs }: Gap): boolean {
  return atMs >= fromMs && atMs <= toMs;
}

/**
 * Compares what upstream had acknowledged with what the endpoints saw, as if the gaps had not been: whatever the
 * database remembers has to arrive in order, unaltered and under one webhook-id, though the endpoints may have seen it before.
 */
export function checkRestored({ accounts, bodies, arrivals, gaps }: Facts): RestoreOffences {
  const known = new Set(bodies.flatMap(({ events }) => events.map(({ identity }) => identity)));
  // Statuses of what tenants sent meanwhile are no part of the run.
  const own = arrivals.filter(({ content }) => content === null || known.has(content.identity));
  const remembered = own.filter(({ arrivedMs }) => !gaps.some((gap) => isWithin(arrivedMs, gap)));
  const asked = bodies.map((body) => (isForgotten(body, gaps) ? { ...body, acknowledgedTick: null } : body));
  return {
    ...checkRun({ accounts, bodies: asked, arrivals: remembered }),
    renamed: several(
      own,
      ({ content }) => content?.identity ?? '',
      ({ content }) => content?.eventId ?? '',
    ),
    renumbered: several(
      own,
      ({ content, endpoint, sequence }) => `endpoint ${endpoint}, ${content?.key}, sequence ${sequence}`,
      ({ content }) => content?.identity ?? '',
    ),
  };
}

/** Of which name there are several values. */
function several(
  arrivals: readonly LoggedArrival[],
  nameOf: (arrival: LoggedArrival) => string,
  contentsOf: (arrival: LoggedArrival) => string,
): string[] {
  const values = new Map<string, Set<string>>();
  for (const arrival of arrivals) {
    const name = nameOf(arrival);
    values.set(name, (values.get(name) ?? new Set()).add(contentsOf(arrival)));
  }
  return [...values]
    .filter(([, set]) => set.size > 1)
    .map(([name, set]) => `${name}: ${[...set].join(' and ')}`);
}
