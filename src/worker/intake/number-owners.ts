import { findNumberOwners } from '../../database/accounts.ts';
import type { Transaction } from '../../database/database.ts';
import type { UpstreamItem } from '../../domain/upstream/upstream-items.ts';
import type { Owned } from './owned-item.ts';

export type NumberOwners = {
  /** Tells the items of known numbers, with their owners, from those of numbers that no tenant has. */
  sort(
    trx: Transaction,
    items: readonly UpstreamItem[],
  ): Promise<{ owned: Owned[]; unknown: UpstreamItem[] }>;
};

type Owner = { wabaId: string; tenantId: string };

/** A number stays with its WABA and a WABA with its tenant, so an owner is asked for once per process. */
export function makeNumberOwners(): NumberOwners {
  const known = new Map<string, Owner>();
  return {
    async sort(trx, items) {
      const missing = new Set(items.map((item) => item.phoneNumberId).filter((id) => !known.has(id)));
      if (missing.size > 0) {
        for (const [id, owner] of await findNumberOwners(trx, [...missing])) known.set(id, owner);
      }
      const owned: Owned[] = [];
      const unknown: UpstreamItem[] = [];
      for (const item of items) {
        const owner = known.get(item.phoneNumberId);
        if (owner === undefined) unknown.push(item);
        else owned.push({ item, ...owner });
      }
      return { owned, unknown };
    },
  };
}
