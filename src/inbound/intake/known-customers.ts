import type { Subscriber } from '../../endpoints/endpoint-settings.ts';
import type { SavedCustomers } from '../customers/save-customers.ts';
import type { Contact } from '../customers.ts';
import type { MessageItem, Owned, UpstreamItem } from '../split/upstream-items.ts';

/** A customer about whom a message says nothing new, and who receives the events of the WABA. */
export type KnownCustomer = {
  contact: Contact;
  conversationId: string;
  subscribers: readonly Subscriber[];
};

/** About 1 KiB each. */
const MOST_CUSTOMERS = 10_000;

/**
 * Customers who wrote lately, as the database had them then. Who relies on it has the database compare
 * (`requireKnown`): another process may have changed them since.
 */
export class KnownCustomers {
  readonly #bySender = new Map<string, Omit<KnownCustomer, 'subscribers'>>();
  readonly #subscribers = new Map<string, readonly Subscriber[]>();

  /** Notes who sent these items, and who receives their events. */
  note(
    items: readonly Owned[],
    { senders, conversations }: Pick<SavedCustomers, 'senders' | 'conversations'>,
    subscribers: readonly Subscriber[],
  ): void {
    if (this.#bySender.size > MOST_CUSTOMERS) this.clear();
    for (const owned of items) {
      if (!isPlainMessage(owned)) continue;
      const contact = senders.get(owned.item);
      const conversationId = conversations.get(owned.item);
      if (contact === undefined || conversationId === undefined) continue;
      this.#bySender.set(keyOf(owned), { contact, conversationId });
      const { wabaId } = owned;
      this.#subscribers.set(
        wabaId,
        subscribers.filter((one) => one.wabaId === wabaId),
      );
    }
  }

  find(owned: Owned<MessageItem>): KnownCustomer | null {
    const known = this.#bySender.get(keyOf(owned));
    const subscribers = this.#subscribers.get(owned.wabaId);
    if (known === undefined || subscribers === undefined) return null;
    return saysNothingNew(owned.item, known.contact) ? { ...known, subscribers } : null;
  }

  clear(): void {
    this.#bySender.clear();
    this.#subscribers.clear();
  }
}

/** A message from one person, without what becomes rows of its own beside it. */
export function isPlainMessage(owned: Owned): owned is Owned<MessageItem> {
  const { item } = owned as Owned<UpstreamItem>;
  return (
    item.kind === 'message' &&
    !item.placeholder &&
    item.groupId === null &&
    item.identityChange === null &&
    item.media === null &&
    item.order === null &&
    (item.sender.userId ?? item.sender.waId) !== null
  );
}

function keyOf({ wabaId, item: { phoneNumberId, sender } }: Owned<MessageItem>): string {
  return `${wabaId} ${phoneNumberId} ${sender.userId} ${sender.waId}`;
}

function saysNothingNew({ sender }: MessageItem, contact: Contact): boolean {
  const said = [
    [sender.userId, contact.userId],
    [sender.waId, contact.waId],
    [sender.parentUserId, contact.parentUserId],
    [sender.name, contact.profileName],
    [sender.username, contact.username],
  ] as const;
  return said.every(([value, known]) => value === null || value === known);
}
