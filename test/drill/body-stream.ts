import {
  bodyOf,
  cartOrder,
  type ExpectedEvent,
  imageMessage,
  messageStatus,
  paymentStatus,
  textMessage,
  type UpstreamAccount,
  type UpstreamItem,
} from '../support/load/upstream-bodies.ts';
import { seededDice } from '../support/seeded-dice.ts';

/** A body that upstream has for us. */
export type DrillBody = { wabaId: string; bytes: Buffer; events: ExpectedEvent[] };

const LADDER = ['sent', 'delivered', 'read'];

/**
 * An endless stream of bodies for one account, the same for the same seed; every id occurs once. Without `media` it has
 * no images, which need an upstream that hands them out.
 */
export function bodyStream(account: UpstreamAccount, seed: number, media = true): () => DrillBody {
  const dice = seededDice(seed);
  /** The later parts of ladders that are split over bodies: one part per body, in their order. */
  const later: UpstreamItem[][] = [];
  let ids = 0;
  const id = (what: string): string => {
    ids += 1;
    return `wamid.drill-${account.wabaId}-${seed}-${what}-${ids}`;
  };
  const asBody = (items: UpstreamItem[]): DrillBody => ({
    wabaId: account.wabaId,
    bytes: bodyOf(account, items),
    events: items.flatMap((item) => item.events),
  });
  return () => {
    const due = dice() < 0.6 ? later.shift() : undefined;
    if (due !== undefined) return asBody(due);
    const [first = [], ...rest] = newBodies(dice, id, account, media);
    later.push(...rest);
    return asBody(first);
  };
}

/** What belongs together, a list of items per body. */
function newBodies(
  dice: () => number,
  id: (what: string) => string,
  account: UpstreamAccount,
  media: boolean,
): UpstreamItem[][] {
  const roll = dice();
  const texts = (count: number) => Array.from({ length: count }, () => textMessage(id('t'), 'Hello'));
  if (roll < 0.4) return [texts(1)];
  if (roll < 0.52) return [texts(2 + Math.floor(dice() * 4))];
  if (roll < 0.67) return [ladder(id('s'))];
  if (roll < 0.82) return ladder(id('s')).map((status) => [status]);
  if (roll < 0.88) return [[cartOrder(id('o'), `70${account.wabaId.slice(2)}`)]];
  if (roll < 0.92) {
    const reference = id('ref');
    return ['pending', 'captured'].map((status) => [paymentStatus(id('p'), reference, status)]);
  }
  if (roll < 0.96 && !media) return [texts(1)];
  if (roll < 0.96) return [[imageMessage(id('i'), String(600_000_000_100_000 + Math.floor(dice() * 1_000)))]];
  return [[...texts(2), ...ladder(id('s')), ...ladder(id('s'))]];
}

function ladder(id: string): UpstreamItem[] {
  return LADDER.map((status) => messageStatus(id, status));
}
