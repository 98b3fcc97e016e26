import type { UpstreamItem } from '../split/upstream-items.ts';

/** An upstream item whose phone number is ours, with the WABA and tenant it belongs to. */
export type Owned<Item extends UpstreamItem = UpstreamItem> = {
  item: Item;
  wabaId: string;
  tenantId: string;
};
