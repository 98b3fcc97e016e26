import type { Contact } from '../../features/customers/customers.ts';
import type { PhoneAlias } from '../../features/customers/phone-aliases.ts';
import type { PersonIds, Spelled } from '../split/item-context.ts';
import type { IdentityChange } from '../split/message-items.ts';

type Sighting = Spelled & {
  wabaId: string;
  parentUserId: string | null;
  name: string | null;
  username: string | null;
};

/** `id` is null until a row is drawn for it. */
export type BatchCustomer = Omit<Contact, 'id'> & { id: string | null };

type IdName = 'userId' | 'waId';

const DESCRIPTION = ['profileName', 'username', 'parentUserId'] as const;

/**
 * The customers of one batch, found by user id or phone. Sightings and changes are applied in the order in which
 * upstream sent them; `merges` lists stored contacts that turned out to be the same person.
 */
export class BatchCustomers {
  readonly merges: { wabaId: string; keptId: string; droppedId: string }[] = [];
  /** Pairs of phones that the batch shows and that are not stored. */
  readonly aliases: PhoneAlias[] = [];
  readonly changed = new Set<BatchCustomer>();
  readonly #actual = new Map<string, string>();
  readonly #by = { userId: new Map<string, BatchCustomer>(), waId: new Map<string, BatchCustomer>() };
  readonly #replaced = new Map<BatchCustomer, BatchCustomer>();

  constructor(stored: readonly Contact[]) {
    for (const contact of stored) {
      this.#index({ ...contact });
      for (const phone of contact.phones)
        if (contact.waId !== null) this.#actual.set(`${contact.wabaId} ${phone}`, contact.waId);
    }
  }

  see(seen: Sighting): BatchCustomer {
    const sighting = { ...seen, waId: this.#actualPhone(seen.wabaId, seen.waId) };
    this.#join(sighting);
    const customer = this.#match(sighting) ?? this.#create(sighting.wabaId);
    this.#setId(customer, 'userId', sighting.userId);
    this.#setId(customer, 'waId', sighting.waId);
    const { name: profileName, username, parentUserId } = sighting;
    const said = { profileName, username, parentUserId };
    for (const member of DESCRIPTION) {
      if (said[member] === null || said[member] === customer[member]) continue;
      customer[member] = said[member];
      this.changed.add(customer);
    }
    return customer;
  }

  /** Gives the contact under the old ids the new ones, as upstream names both, so that its history goes on under them. */
  follow(change: IdentityChange & { wabaId: string }): BatchCustomer {
    const { wabaId, userId, waId } = change;
    const before = this.#match({ wabaId, userId: change.previousUserId, waId: change.previousWaId });
    const after = this.#match({ wabaId, userId, waId });
    const customer = this.#same(before, after) ?? this.#create(wabaId);
    this.#setId(customer, 'waId', waId);
    this.#setId(customer, 'userId', userId);
    return customer;
  }

  find({ wabaId, userId, waId }: PersonIds & { wabaId: string }): BatchCustomer | undefined {
    const ids = { wabaId, userId, waId: this.#actualPhone(wabaId, waId) };
    return this.#known(ids, 'userId') ?? this.#known(ids, 'waId');
  }

  #actualPhone(wabaId: string, waId: string | null): string | null {
    return waId === null ? null : (this.#actual.get(`${wabaId} ${waId}`) ?? waId);
  }

  /** A phone under two spellings is one: a customer who was known under the other one goes on under this. */
  #join({ wabaId, userId, waId, otherPhone }: Sighting): void {
    const key = `${wabaId} ${otherPhone}`;
    if (otherPhone === null || waId === null || waId === otherPhone || this.#actual.get(key) === waId) return;
    this.#actual.set(key, waId);
    this.aliases.push({ wabaId, phone: otherPhone, waId });
    const former = this.#match({ wabaId, userId, waId: otherPhone });
    const now = this.#match({ wabaId, userId, waId });
    const areTwo = (former?.userId ?? null) !== null && (now?.userId ?? null) !== null;
    if (areTwo && former !== undefined && former !== now) this.#clearId(former, 'waId');
    const customer = areTwo ? now : this.#same(former, now);
    if (customer === undefined) return;
    this.#setId(customer, 'waId', waId);
    customer.phones = [...customer.phones, otherPhone];
  }

  current(customer: BatchCustomer): BatchCustomer {
    const next = this.#replaced.get(customer);
    return next === undefined ? customer : this.current(next);
  }

  #known(ids: PersonIds & { wabaId: string }, name: IdName): BatchCustomer | undefined {
    return ids[name] === null ? undefined : this.#by[name].get(`${ids.wabaId} ${ids[name]}`);
  }

  #match(ids: PersonIds & { wabaId: string }): BatchCustomer | undefined {
    const [user, phone] = [this.#known(ids, 'userId'), this.#known(ids, 'waId')];
    if (phone === undefined || phone === user) return user;
    const isOfAnother = phone.userId !== null && ids.userId !== null && phone.userId !== ids.userId;
    if (!isOfAnother) return this.#same(user, phone);
    this.#clearId(phone, 'waId');
    return user;
  }

  /** One entry for two that are the same person; the older row stays. */
  #same(a: BatchCustomer | undefined, b: BatchCustomer | undefined): BatchCustomer | undefined {
    if (a === undefined || b === undefined || a === b) return a ?? b;
    const [kept, dropped] = isOlder(b, a) ? [b, a] : [a, b];
    const { userId, waId } = dropped;
    this.#clearId(dropped, 'waId');
    this.#clearId(dropped, 'userId');
    this.changed.delete(dropped);
    if (kept.userId === null) this.#setId(kept, 'userId', userId);
    if (kept.waId === null) this.#setId(kept, 'waId', waId);
    kept.profileName ??= dropped.profileName;
    kept.username ??= dropped.username;
    if (kept.id !== null && dropped.id !== null) {
      this.merges.push({ wabaId: kept.wabaId, keptId: kept.id, droppedId: dropped.id });
    }
    this.#replaced.set(dropped, kept);
    this.changed.add(kept);
    return kept;
  }

  #create(wabaId: string): BatchCustomer {
    const nothing = { userId: null, parentUserId: null, waId: null, profileName: null, username: null };
    const customer: BatchCustomer = { id: null, wabaId, ...nothing, phones: [] };
    this.changed.add(customer);
    return customer;
  }

  #setId(customer: BatchCustomer, name: IdName, id: string | null): void {
    if (id === null || id === customer[name]) return;
    const holder = this.#by[name].get(`${customer.wabaId} ${id}`);
    if (holder !== undefined) this.#clearId(holder, name);
    this.#clearId(customer, name);
    customer[name] = id;
    this.changed.add(customer);
    this.#index(customer);
  }

  #clearId(customer: BatchCustomer, name: IdName): void {
    if (customer[name] === null) return;
    this.#by[name].delete(`${customer.wabaId} ${customer[name]}`);
    customer[name] = null;
    this.changed.add(customer);
  }

  #index(customer: BatchCustomer): void {
    const { wabaId, userId, waId } = customer;
    if (userId !== null) this.#by.userId.set(`${wabaId} ${userId}`, customer);
    if (waId !== null) this.#by.waId.set(`${wabaId} ${waId}`, customer);
  }
}

function isOlder(a: BatchCustomer, b: BatchCustomer): boolean {
  if (a.id === null || b.id === null) return a.id !== null;
  return BigInt(a.id) < BigInt(b.id);
}
