import type { Subscriber } from '../../engine/endpoint/endpoint-settings.ts';
import type { Contact } from '../../features/customers/customers.ts';
import { isApplied } from '../fields/apply-fields.ts';
import type { Spelled } from '../split/item-context.ts';
import type { MessageItem } from '../split/message-items.ts';
import type { StatusItem } from '../split/status-items.ts';
import type { Owned, UpstreamItem } from '../split/upstream-items.ts';

export type PlainItem = MessageItem | StatusItem;

/** Null: who got the message of a status never wrote, and has no conversation. */
type Person = { contact: Contact; conversationId: string } | null;

/** A customer about whom an item says nothing new, and who receives the events of the WABA. */
export type KnownCustomer = {
  person: Person;
  subscribers: readonly Subscriber[];
  /** Contact and conversation are still to be stored, under these ids. */
  isNew: boolean;
};

/** Null for a customer who is not known, or about whom the item says something new. */
export type FindCustomer = (owned: Owned<PlainItem>) => KnownCustomer | null;

/** About half a KiB each. The one that was seen longest ago goes first. */
const MOST_CUSTOMERS = 65_536;

/** Customers of late messages and statuses as the database had them then: who relies on it has the database compare. */
export class KnownCustomers {
  readonly #persons = new Map<string, Person>();
  readonly #subscribers = new Map<string, readonly Subscriber[]>();

  addSubscribers(wabaId: string, subscribers: readonly Subscriber[]): void {
    this.#subscribers.set(wabaId, subscribers);
  }

  add(owned: Owned<PlainItem>, { person }: Pick<KnownCustomer, 'person'>): void {
    this.#see(personKeyOf(owned), person);
    const [longestAgo] = this.#persons.keys();
    if (longestAgo !== undefined && this.#persons.size > MOST_CUSTOMERS) this.#persons.delete(longestAgo);
  }

  /** A Map keeps the order of insertion, so who was just seen stands last. */
  #see(key: string, person: Person): void {
    this.#persons.delete(key);
    this.#persons.set(key, person);
  }

  subscribersOf(wabaId: string): readonly Subscriber[] {
    return this.#subscribers.get(wabaId) ?? [];
  }

  find(owned: Owned<PlainItem>): KnownCustomer | null {
    const key = personKeyOf(owned);
    const person = this.#persons.get(key);
    const subscribers = this.#subscribers.get(owned.wabaId);
    if (person === undefined || subscribers === undefined) return null;
    this.#see(key, person);
    return saysNothingNew(owned.item, person) ? { person, subscribers, isNew: false } : null;
  }

  /** For items of which not all is as noted. */
  forget(items: readonly Owned<PlainItem>[]): void {
    for (const owned of items) {
      this.#persons.delete(personKeyOf(owned));
      this.#subscribers.delete(owned.wabaId);
    }
  }

  clear(): void {
    this.#persons.clear();
    this.#subscribers.clear();
  }
}

/** A message without parts that become separate rows, or a status; from or to one person. */
export function isPlain(item: UpstreamItem): item is PlainItem {
  if (item.kind === 'upstream' || item.kind === 'payment' || item.groupId !== null) return false;
  const { userId, waId } = personOf(item);
  if (userId === null && waId === null) return false;
  if (item.kind === 'status') return item.participant === null && !isApplied({ item });
  return !item.placeholder && item.identityChange === null && item.media === null && item.order === null;
}

export function personOf(item: PlainItem): Spelled {
  return item.kind === 'message' ? item.sender : item.recipient;
}

/** The same for items about one customer, under the same ids, of one number. */
export function personKeyOf({ wabaId, item }: Owned<PlainItem>): string {
  const { userId, waId } = personOf(item);
  return `${wabaId} ${item.phoneNumberId} ${userId} ${waId}`;
}

/** Whether what an item says about its customer is stored. Both ids of a recipient make a contact, one alone does not. */
export function saysNothingNew(item: PlainItem, person: Person): boolean {
  const { userId, waId, otherPhone } = personOf(item);
  if (person === null) return item.kind === 'status' && (userId === null || waId === null);
  const { contact } = person;
  if (otherPhone !== null && !contact.phones.includes(otherPhone)) return false;
  if (waId !== null && !isPhoneOf(contact, waId)) return false;
  return [[userId, contact.userId] as const, ...descriptionIn(item, contact)].every(
    ([value, known]) => value === null || value === known,
  );
}

/** In either spelling. */
export function isPhoneOf({ waId: own, phones }: Pick<Contact, 'waId' | 'phones'>, waId: string): boolean {
  return own === waId || phones.includes(waId);
}

function descriptionIn(item: PlainItem, contact: Contact) {
  if (item.kind === 'status') return [];
  const { parentUserId, name, username } = item.sender;
  return [
    [parentUserId, contact.parentUserId],
    [name, contact.profileName],
    [username, contact.username],
  ] as const;
}
