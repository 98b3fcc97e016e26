import type { ExpectedEvent } from '../support/load/upstream-bodies.ts';
import type { DrillAccount, DrillEndpoint } from './accounts.ts';
import type { LoggedArrival } from './receivers.ts';
import type { SentBody } from './senders.ts';

/** What went wrong, a sentence each; all empty when nothing did. */
export type Offences = {
  /** Acknowledged and never taken by an endpoint that wants it. */
  lost: string[];
  /** An event's first arrival before its predecessor of the same key was taken. */
  disordered: string[];
  /** Another order than that in which upstream sent, where it waited for the acknowledgement in between. */
  misordered: string[];
  /** One webhook-id with different bodies. */
  altered: string[];
  /** One upstream event under several webhook-ids. */
  doubled: string[];
  /** Another tenant's, not subscribed to, never sent by upstream, or sent to a redirect's target. */
  misdirected: string[];
};

type Run = {
  accounts: readonly DrillAccount[];
  bodies: readonly SentBody[];
  arrivals: readonly LoggedArrival[];
};

/** How one event fared at one endpoint. */
type Passage = {
  name: string;
  webhookIds: Set<string>;
  sequence: number;
  firstTick: number;
  takenTick: number | null;
};

/** Compares what upstream had acknowledged with what the endpoints saw. */
export function checkRun(run: Run): Offences {
  const endpoints = run.accounts.flatMap((account) =>
    account.endpoints.map((endpoint) => ({ account, endpoint, passages: new Map<string, Passage>() })),
  );
  const offences: Offences = {
    lost: [],
    disordered: [],
    misordered: [],
    altered: alteredBodies(run.arrivals),
    doubled: [],
    misdirected: [],
  };
  const known = new Set(run.bodies.flatMap((body) => body.events.map(({ identity }) => identity)));
  for (const { account, endpoint, passages } of endpoints) {
    const keys = new Map<string, Passage[]>();
    const own = run.arrivals.filter((arrival) => arrival.endpoint === endpoint.index);
    for (const arrival of own.sort((a, b) => a.arrivedTick - b.arrivedTick)) {
      const wrong = misdirection(arrival, account, endpoint, known);
      if (wrong === null) follow(passages, keys, arrival);
      else offences.misdirected.push(`endpoint ${endpoint.index}: ${wrong}`);
    }
    offences.doubled.push(...doubledEvents(endpoint, passages));
    offences.disordered.push(...[...keys].flatMap(([key, line]) => disorderOf(endpoint, key, line)));
    const bodies = run.bodies.filter(({ wabaId }) => wabaId === account.wabaId);
    offences.lost.push(...expectedAt(endpoint, bodies).flatMap((event) => lossOf(endpoint, event, passages)));
    offences.misordered.push(...misorderedEvents(endpoint, bodies, passages));
  }
  return offences;
}

/** The acknowledged events that an endpoint has to get. */
export function expectedAt({ eventTypes }: DrillEndpoint, bodies: readonly SentBody[]): ExpectedEvent[] {
  return bodies
    .filter(({ acknowledgedTick }) => acknowledgedTick !== null)
    .flatMap(({ events }) => events)
    .filter(({ eventType }) => eventTypes === null || eventTypes.includes(eventType));
}

function follow(passages: Map<string, Passage>, keys: Map<string, Passage[]>, arrival: LoggedArrival): void {
  const { identity = '', key = '' } = arrival.content ?? {};
  let passage = passages.get(identity);
  if (passage === undefined) {
    passage = {
      name: identity,
      webhookIds: new Set(),
      sequence: arrival.sequence,
      firstTick: arrival.arrivedTick,
      takenTick: null,
    };
    passages.set(identity, passage);
    keys.set(key, [...(keys.get(key) ?? []), passage]);
  }
  passage.webhookIds.add(arrival.webhookId);
  if (arrival.accepted) passage.takenTick ??= arrival.answeredTick;
}

function misdirection(
  { content, webhookId, answer }: LoggedArrival,
  { wabaId }: DrillAccount,
  { eventTypes }: DrillEndpoint,
  known: ReadonlySet<string>,
): string | null {
  if (content === null) return `${webhookId} is no event of the drill`;
  if (answer === 'moved') return `${content.identity} was sent to the target of a redirect`;
  if (content.wabaId !== wabaId) return `${content.identity} belongs to WABA ${content.wabaId}`;
  if (!known.has(content.identity)) return `${content.identity} was never sent by upstream`;
  const wanted = eventTypes === null || eventTypes.some((type) => type === content.eventType);
  return wanted ? null : `${content.identity} is of a type that it did not subscribe to`;
}

function alteredBodies(arrivals: readonly LoggedArrival[]): string[] {
  const hashes = new Map<string, string>();
  return arrivals.flatMap(({ webhookId, bodyHash, attempt, endpoint }) => {
    const before = hashes.get(webhookId) ?? bodyHash;
    hashes.set(webhookId, before);
    return before === bodyHash
      ? []
      : [`${webhookId} came with another body, attempt ${attempt} at endpoint ${endpoint}`];
  });
}

function doubledEvents({ index }: DrillEndpoint, passages: ReadonlyMap<string, Passage>): string[] {
  return [...passages.values()]
    .filter(({ webhookIds }) => webhookIds.size > 1)
    .map(({ name, webhookIds }) => `endpoint ${index}: ${name} came as ${[...webhookIds].join(' and ')}`);
}

function disorderOf({ index }: DrillEndpoint, key: string, line: readonly Passage[]): string[] {
  const inOrder = [...line].sort((a, b) => a.sequence - b.sequence);
  return inOrder.slice(1).flatMap((passage, n) => {
    const before = inOrder[n];
    if (before === undefined) return [];
    const waited = before.takenTick !== null && before.takenTick < passage.firstTick;
    if (waited && before.sequence < passage.sequence) return [];
    return [
      `endpoint ${index}, key ${key}: ${passage.name} (sequence ${passage.sequence}) came before ` +
        `${before.name} (sequence ${before.sequence}) was taken`,
    ];
  });
}

function lossOf(
  { index, kind }: DrillEndpoint,
  { identity }: ExpectedEvent,
  passages: ReadonlyMap<string, Passage>,
): string[] {
  const passage = passages.get(identity);
  if (passage === undefined) return [`endpoint ${index} (${kind}): ${identity} never came`];
  return passage.takenTick === null
    ? [`endpoint ${index} (${kind}): ${identity} came but was never taken`]
    : [];
}

/**
 * Two events of one key came from upstream one after the other when they are in one body, or when the body of the
 * first was acknowledged before the body of the second was sent for the first time.
 */
function misorderedEvents(
  { index }: DrillEndpoint,
  bodies: readonly SentBody[],
  passages: ReadonlyMap<string, Passage>,
): string[] {
  const keys = new Map<string, { identity: string; body: SentBody }[]>();
  for (const body of bodies) {
    for (const { key, identity } of body.events) {
      keys.set(key, [...(keys.get(key) ?? []), { identity, body }]);
    }
  }
  return [...keys.values()].flatMap((line) =>
    line.flatMap((later, n) => {
      const arrived = passages.get(later.identity);
      if (arrived === undefined) return [];
      return line
        .slice(0, n)
        .filter(
          ({ body }) => body === later.body || (body.acknowledgedTick ?? Infinity) < later.body.firstSentTick,
        )
        .filter(({ identity }) => (passages.get(identity)?.firstTick ?? 0) > arrived.firstTick)
        .map((earlier) => `endpoint ${index}: ${later.identity} came before ${earlier.identity}`);
    }),
  );
}
