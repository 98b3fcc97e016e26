import type { Subscriber } from '../../endpoints/endpoint-settings.ts';
import type { ContactWithConversations } from '../customers.ts';
import type { MessageItem, Owned, UpstreamItem } from '../split/upstream-items.ts';

/** A customer about whom a message says nothing new, and who receives the events of the WABA. */
export type KnownCustomer = {
  contact: ContactWithConversations;
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
  readonly #byMessage = new Map<string, ContactWithConversations>();
  readonly #subscribers = new Map<string, readonly Subscriber[]>();

  /** Notes what a transaction has read for these items. */
  note(
    items: readonly Owned[],
    read: { contacts: readonly ContactWithConversations[]; subscribers: readonly Subscriber[] },
  ): void {
    if (this.#byMessage.size > MOST_CUSTOMERS) this.clear();
    for (const owned of items) {
      if (!isPlainMessage(owned)) continue;
      const { item, wabaId } = owned;
      const contact = read.contacts.find((one) => one.wabaId === wabaId && saysNothingNew(item, one));
      if (contact !== undefined) this.#byMessage.set(keyOf(owned), contact);
      const own = read.subscribers.filter((one) => one.wabaId === wabaId);
      this.#subscribers.set(wabaId, own);
    }
  }

  find(owned: Owned<MessageItem>): KnownCustomer | null {
    const contact = this.#byMessage.get(keyOf(owned));
    const subscribers = this.#subscribers.get(owned.wabaId);
    const { phoneNumberId } = owned.item;
    const conversationId = contact?.conversations.find((one) => one.phoneNumberId === phoneNumberId)?.id;
    if (contact === undefined || subscribers === undefined || conversationId === undefined) return null;
    return saysNothingNew(owned.item, contact) ? { contact, conversationId, subscribers } : null;
  }

  forget(owned: Owned<MessageItem>): void {
    this.#byMessage.delete(keyOf(owned));
  }

  clear(): void {
    this.#byMessage.clear();
    this.#subscribers.clear();
  }
}

/** A message from one person, without what becomes rows of its own beside it. */
export function isPlainMessage(owned: Owned): owned is Owned<MessageItem> {
  const { item } = owned as Owned<UpstreamItem>;
  return (
    item.kind === 'message' &&
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

function saysNothingNew({ sender }: MessageItem, contact: ContactWithConversations): boolean {
  const said = [
    [sender.userId, contact.userId],
    [sender.waId, contact.waId],
    [sender.parentUserId, contact.parentUserId],
    [sender.name, contact.profileName],
    [sender.username, contact.username],
  ] as const;
  return said.every(([value, known]) => value === null || value === known);
}
