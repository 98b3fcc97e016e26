import type { InboxBody } from '../../engine/inbox/bodies.ts';
import { type QuarantinedPart, splitUpstreamBody, type UpstreamItem } from '../split/upstream-items.ts';

export type ReadBody = {
  body: InboxBody;
  items: UpstreamItem[];
  quarantined: QuarantinedPart[];
  unreadable: string | null;
};

export type BodyPortion = {
  read: ReadBody;
  items: readonly UpstreamItem[];
  isLast: boolean;
};

export function readBody(body: InboxBody): ReadBody {
  try {
    const split = splitUpstreamBody(body.body);
    const isLeft = leftItems(body);
    return { body, ...split, items: split.items.filter(isLeft), unreadable: null };
  } catch (error) {
    const unreadable = error instanceof Error ? error.message : 'unreadable body';
    return { body, items: [], quarantined: [], unreadable };
  }
}

/** Of a body that was ingested before, only what was quarantined then: the deduplication keys of the rest may be forgotten. */
function leftItems({ notes }: InboxBody): (item: UpstreamItem) => boolean {
  if (notes === null) return () => true;
  const noted = new Set(notes.map(({ path }) => path));
  return ({ path }) => {
    // A note may be about all of a value, or of the body.
    for (let part = path; part !== ''; part = part.slice(0, Math.max(0, part.lastIndexOf('.'))))
      if (noted.has(part)) return true;
    return noted.has('');
  };
}

/**
 * Chooses what to ingest of bodies that are too much for one transaction: of each WABA's bodies, in their order, as
 * much as its share of `budget` allows; what one does not need goes to the others. Each gets one item at least. A body is
 * cut only when it alone exceeds the share.
 */
export function sharePortions(
  bodies: readonly ReadBody[],
  budget: number,
  costOf: (item: UpstreamItem) => number,
): BodyPortion[] {
  const wabas = new Map<string, { cost: number; wholes: { portion: BodyPortion; cost: number }[] }>();
  for (const read of bodies) {
    const items = read.items.slice(takenBefore(read));
    const cost = items.reduce((sum, item) => sum + costOf(item), 0);
    const waba = wabas.get(read.body.wabaId) ?? { cost: 0, wholes: [] };
    waba.cost += cost;
    waba.wholes.push({ portion: { read, items, isLast: true }, cost });
    wabas.set(read.body.wabaId, waba);
  }
  const smallestFirst = [...wabas.values()].sort((a, b) => a.cost - b.cost);
  let left = budget;
  return smallestFirst.flatMap(({ wholes }, index) => {
    const share = left / (smallestFirst.length - index);
    const portions: BodyPortion[] = [];
    let spent = 0;
    for (const { portion, cost } of wholes) {
      if (spent + cost > share) {
        if (spent === 0) portions.push(cutPortion(portion, share, costOf));
        break;
      }
      spent += cost;
      portions.push(portion);
    }
    left -= Math.min(
      left,
      portions.reduce((sum, { items }) => sum + totalOf(items, costOf), 0),
    );
    return portions;
  });
}

/** How many items of a body were ingested by earlier transactions. Deduplication makes a wrong answer harmless. */
function takenBefore({ body: { partly }, items }: ReadBody): number {
  return partly === null ? 0 : items.findIndex(({ path }) => path === partly.until) + 1;
}

function totalOf(items: readonly UpstreamItem[], costOf: (item: UpstreamItem) => number): number {
  return items.reduce((sum, item) => sum + costOf(item), 0);
}

/** As many of its first items as `share` allows, and one at least. */
function cutPortion(
  { read, items }: BodyPortion,
  share: number,
  costOf: (item: UpstreamItem) => number,
): BodyPortion {
  let spent = 0;
  const stop = items.findIndex((item, index) => {
    spent += costOf(item);
    return spent > share && index > 0;
  });
  return stop < 0 ? { read, items, isLast: true } : { read, items: items.slice(0, stop), isLast: false };
}
