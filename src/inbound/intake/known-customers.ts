import type { Contact } from '../../customers/customers.ts';
import type { Subscriber } from '../../endpoints/endpoint-settings.ts';
import type { SavedCustomers } from '../customers/save-customers.ts';
import type { MessageItem, Owned, UpstreamItem } from '../split/upstream-items.ts';

/** A customer about whom a message says nothing new, and who receives the events of the WABA. */
export type KnownCustomer = {
  contact: Contact;
  conversationId: string;
  subscribers: readonly Subscriber[];
  /** Contact and conversation are still to be stored, under these ids. */
  isNew: boolean;
};

/** Null for a customer who is not known, or about whom the message says something new. */
export type FindCustomer = (owned: Owned<MessageItem>) => KnownCustomer | null;

/** About 1 KiB each. */
const MOST_CUSTOMERS = 10_000;

/**
 * Customers who wrote lately, as the database had them then. Who relies on it has the database compare
 * (`requireKnown`): another process may have changed them since.
 */
export class KnownCustomers {
  readonly #bySender = new Map<string, Pick<KnownCustomer, 'contact' | 'conversationId'>>();
  readonly #subscribers = new Map<string, readonly Subscriber[]>();

  /** Notes who sent these items, and who receives their events. */
  note(
    items: readonly Owned[],
    { senders, conversations }: Pick<SavedCustomers, 'senders' | 'conversations'>,
    subscribers: readonly Subscriber[],
  ): void {
    for (const owned of items) {
      if (!isPlainMessage(owned)) continue;
      const contact = senders.get(owned.item);
      const conversationId = conversations.get(owned.item);
      if (contact === undefined || conversationId === undefined) continue;
      const own = subscribers.filter((one) => one.wabaId === owned.wabaId);
      this.add(owned, { contact, conversationId, subscribers: own });
    }
  }

  /** Notes who sent a message, and who receives the events of its WABA. */
  add(
    owned: Owned<MessageItem>,
    { contact, conversationId, subscribers }: Omit<KnownCustomer, 'isNew'>,
  ): void {
    if (this.#bySender.size > MOST_CUSTOMERS) this.clear();
    this.#bySender.set(senderKeyOf(owned), { contact, conversationId });
    this.#subscribers.set(owned.wabaId, subscribers);
  }

  find(owned: Owned<MessageItem>): KnownCustomer | null {
    const known = this.#bySender.get(senderKeyOf(owned));
    const subscribers = this.#subscribers.get(owned.wabaId);
    if (known === undefined || subscribers === undefined) return null;
    return saysNothingNew(owned.item, known.contact) ? { ...known, subscribers, isNew: false } : null;
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

/** The same for messages of one sender, under the same ids, to one number. */
export function senderKeyOf({ wabaId, item: { phoneNumberId, sender } }: Owned<MessageItem>): string {
  return `${wabaId} ${phoneNumberId} ${sender.userId} ${sender.waId}`;
}

/** Whether what a message says about its sender is stored. */
export function saysNothingNew({ sender }: MessageItem, contact: Contact): boolean {
  const said = [
    [sender.userId, contact.userId],
    [sender.waId, contact.waId],
    [sender.parentUserId, contact.parentUserId],
    [sender.name, contact.profileName],
    [sender.username, contact.username],
  ] as const;
  return said.every(([value, known]) => value === null || value === known);
}
