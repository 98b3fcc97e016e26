import type { Transaction } from '../../platform/postgres/database.ts';
import { findGroupConversations, type GroupConversation, openGroupConversations } from '../customers.ts';
import type { Owned } from '../intake/owned-item.ts';
import type { UpstreamItem } from '../split/upstream-items.ts';

type InGroup = { item: UpstreamItem; wabaId: string; phoneNumberId: string; groupId: string };

/**
 * The conversation of each item that belongs to a group: that of the group, whoever of it wrote. A message opens it, a
 * status does not.
 */
export async function groupConversationsOf(
  trx: Transaction,
  items: readonly Owned<UpstreamItem>[],
): Promise<Map<UpstreamItem, string>> {
  const inGroups = items.flatMap(({ item, wabaId }): InGroup[] => {
    const groupId = groupOf(item);
    return groupId === null ? [] : [{ item, wabaId, phoneNumberId: item.phoneNumberId, groupId }];
  });
  if (inGroups.length === 0) return new Map();
  const opened = byGroup(await openGroupConversations(trx, distinct(inGroups.filter(isMessage))));
  const others = distinct(inGroups).filter((group) => !opened.has(keyOf(group)));
  const found = byGroup(await findGroupConversations(trx, others));
  return new Map(
    inGroups.flatMap((group) => {
      const id = opened.get(keyOf(group)) ?? found.get(keyOf(group));
      return id === undefined ? [] : [[group.item, id] as const];
    }),
  );
}

/** The group that an item belongs to; null: it is about one person. */
export function groupOf(item: UpstreamItem): string | null {
  return item.kind === 'payment' ? null : item.groupId;
}

function isMessage({ item }: InGroup): boolean {
  return item.kind === 'message';
}

function keyOf({ phoneNumberId, groupId }: { phoneNumberId: string; groupId: string }): string {
  return `${phoneNumberId} ${groupId}`;
}

function distinct(groups: readonly InGroup[]): InGroup[] {
  return [...new Map(groups.map((group) => [keyOf(group), group])).values()];
}

function byGroup(rows: readonly GroupConversation[]): Map<string, string> {
  return new Map(rows.map((row) => [keyOf(row), row.id]));
}
