import { erasedName, wasErased } from '../../features/messages/messages.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { queryColumn } from '../../platform/postgres/sql.ts';
import type { UpstreamItem } from '../split/upstream-items.ts';

/** The name by which an erased item is remembered; null for what is about no message. */
export function erasedNameOf(item: UpstreamItem): string | null {
  return item.kind === 'message' || item.kind === 'status' ? erasedName(item, item.upstreamId) : null;
}

/** Of the items those that were erased. */
export async function findErased(
  trx: Transaction,
  items: readonly UpstreamItem[],
): Promise<Set<UpstreamItem>> {
  const names = new Map(items.map((item) => [item, erasedNameOf(item)]));
  const found = await queryColumn<string>(
    trx,
    `select name from unnest(:names::text[]) as n (name) where ${wasErased('name')}`,
    { names: [...names.values()] },
  );
  const erased = new Set<string | null>(found);
  return new Set(items.filter((item) => erased.has(names.get(item) ?? null)));
}
