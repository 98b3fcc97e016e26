import type { InboxBody } from '../../inbox/bodies.ts';
import { AWAITS_NUMBER, NOT_OF_WABA } from '../../inbox/waiting-bodies.ts';
import type { UpstreamItem } from '../split/upstream-items.ts';

type Origin = { signedFor: ReadonlySet<string> | null; waited: ReadonlySet<string> };

export type ItemOrigins = ReadonlyMap<UpstreamItem, Origin>;

export function originsOf(
  bodies: readonly { body: Pick<InboxBody, 'signedFor' | 'notes'>; items: readonly UpstreamItem[] }[],
): ItemOrigins {
  return new Map(
    bodies.flatMap(({ body: { signedFor, notes }, items }) => {
      const waited = (notes ?? []).filter(({ reason }) => reason === AWAITS_NUMBER || reason === NOT_OF_WABA);
      const origin = {
        signedFor: signedFor === null ? null : new Set(signedFor),
        waited: new Set(waited.map(({ path }) => path)),
      };
      return items.map((item) => [item, origin] as const);
    }),
  );
}

/**
 * Why an item may not go to the WABA that has its number; null: it may. Its app secret must be allowed to speak for that
 * WABA. A number that upstream named as one of another WABA before it was known may have become anybody's since.
 */
export function refusalOf(item: UpstreamItem, ownerWabaId: string, origins: ItemOrigins): string | null {
  const origin = origins.get(item);
  if (origin === undefined) throw new Error(`the item ${item.path} is of no known body`);
  if (origin.signedFor?.has(ownerWabaId) === false) return 'not_signed_for_waba';
  return origin.waited.has(item.path) && item.wabaId !== ownerWabaId ? NOT_OF_WABA : null;
}
