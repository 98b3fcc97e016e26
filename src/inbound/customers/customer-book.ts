import type { Contact } from '../customers.ts';

/** What one upstream item says about a customer. */
export type Sighting = {
  wabaId: string;
  userId: string | null;
  parentUserId: string | null;
  waId: string | null;
  name: string | null;
  username: string | null;
};

/** A customer's ids changed; upstream names the old and the new ones. */
export type IdentityChange = {
  wabaId: string;
  previousUserId: string | null;
  previousWaId: string | null;
  userId: string | null;
  waId: string | null;
};

/** A contact in the book; `id` is null until a row is drawn for it. */
export type BookEntry = Omit<Contact, 'id'> & { id: string | null };

/**
 * The customers of one batch, found by user id or phone. Sightings and changes are applied in the order in which
 * upstream sent them; `merges` lists stored contacts that turned out to be the same person.
 */
export class CustomerBook {
  readonly merges: { wabaId: string; keptId: string; droppedId: string }[] = [];
  readonly changed = new Set<BookEntry>();
  #byUserId = new Map<string, BookEntry>();
  #byWaId = new Map<string, BookEntry>();

  constructor(stored: readonly Contact[]) {
    for (const contact of stored) this.#index({ ...contact });
  }

  /** The contact that a sighting is of, created or completed from it. */
  see(sighting: Sighting): BookEntry {
    const entry = this.#match(sighting) ?? this.#create(sighting.wabaId);
    this.#assign(entry, sighting);
    if (sighting.name !== null && sighting.name !== entry.profileName) {
      entry.profileName = sighting.name;
      this.changed.add(entry);
    }
    if (sighting.username !== null && sighting.username !== entry.username) {
      entry.username = sighting.username;
      this.changed.add(entry);
    }
    if (sighting.parentUserId !== null && sighting.parentUserId !== entry.parentUserId) {
      entry.parentUserId = sighting.parentUserId;
      this.changed.add(entry);
    }
    return entry;
  }

  /** Gives the contact under the old ids the new ones, so that its history goes on under them. */
  follow(change: IdentityChange): BookEntry {
    const { wabaId } = change;
    const before = this.#match({ wabaId, userId: change.previousUserId, waId: change.previousWaId });
    const after = this.#match({ wabaId, userId: change.userId, waId: change.waId });
    const entry = this.#same(before, after) ?? this.#create(wabaId);
    if (change.waId !== null) this.#setWaId(entry, change.waId);
    if (change.userId !== null) this.#setUserId(entry, change.userId);
    return entry;
  }

  /** The contact that is known under one of the ids, as it is. */
  find(ids: { wabaId: string; userId: string | null; waId: string | null }): BookEntry | undefined {
    const user = ids.userId === null ? undefined : this.#byUserId.get(`${ids.wabaId} ${ids.userId}`);
    return user ?? (ids.waId === null ? undefined : this.#byWaId.get(`${ids.wabaId} ${ids.waId}`));
  }

  #match(ids: { wabaId: string; userId: string | null; waId: string | null }): BookEntry | undefined {
    const user = ids.userId === null ? undefined : this.#byUserId.get(`${ids.wabaId} ${ids.userId}`);
    const phone = ids.waId === null ? undefined : this.#byWaId.get(`${ids.wabaId} ${ids.waId}`);
    if (phone === undefined || phone === user) return user;
    const phoneIsSomebodyElses = phone.userId !== null && ids.userId !== null && phone.userId !== ids.userId;
    if (phoneIsSomebodyElses) {
      this.#clearWaId(phone);
      return user;
    }
    return this.#same(user, phone);
  }

  /** One entry for two that are the same person; the older row stays. */
  #same(a: BookEntry | undefined, b: BookEntry | undefined): BookEntry | undefined {
    if (a === undefined || b === undefined || a === b) return a ?? b;
    const [kept, dropped] = isOlder(b, a) ? [b, a] : [a, b];
    const { userId, waId } = dropped;
    this.#clearWaId(dropped);
    this.#clearUserId(dropped);
    this.changed.delete(dropped);
    if (kept.userId === null && userId !== null) this.#setUserId(kept, userId);
    if (kept.waId === null && waId !== null) this.#setWaId(kept, waId);
    kept.profileName ??= dropped.profileName;
    kept.username ??= dropped.username;
    if (kept.id !== null && dropped.id !== null) {
      this.merges.push({ wabaId: kept.wabaId, keptId: kept.id, droppedId: dropped.id });
    }
    this.#replaced.set(dropped, kept);
    this.changed.add(kept);
    return kept;
  }

  #replaced = new Map<BookEntry, BookEntry>();

  /** The entry that stands for `entry` now, after merges. */
  current(entry: BookEntry): BookEntry {
    let now = entry;
    for (let next = this.#replaced.get(now); next !== undefined; next = this.#replaced.get(now)) now = next;
    return now;
  }

  #create(wabaId: string): BookEntry {
    const nothing = { userId: null, parentUserId: null, waId: null, profileName: null, username: null };
    const entry: BookEntry = { id: null, wabaId, ...nothing };
    this.changed.add(entry);
    return entry;
  }

  #assign(entry: BookEntry, ids: { userId: string | null; waId: string | null }): void {
    if (ids.userId !== null && ids.userId !== entry.userId) this.#setUserId(entry, ids.userId);
    if (ids.waId !== null && ids.waId !== entry.waId) this.#setWaId(entry, ids.waId);
  }

  #setUserId(entry: BookEntry, userId: string): void {
    const holder = this.#byUserId.get(`${entry.wabaId} ${userId}`);
    if (holder !== undefined && holder !== entry) this.#clearUserId(holder);
    this.#clearUserId(entry);
    entry.userId = userId;
    this.changed.add(entry);
    this.#index(entry);
  }

  #setWaId(entry: BookEntry, waId: string): void {
    const holder = this.#byWaId.get(`${entry.wabaId} ${waId}`);
    if (holder !== undefined && holder !== entry) this.#clearWaId(holder);
    this.#clearWaId(entry);
    entry.waId = waId;
    this.changed.add(entry);
    this.#index(entry);
  }

  #clearUserId(entry: BookEntry): void {
    if (entry.userId === null) return;
    this.#byUserId.delete(`${entry.wabaId} ${entry.userId}`);
    entry.userId = null;
    this.changed.add(entry);
  }

  #clearWaId(entry: BookEntry): void {
    if (entry.waId === null) return;
    this.#byWaId.delete(`${entry.wabaId} ${entry.waId}`);
    entry.waId = null;
    this.changed.add(entry);
  }

  #index(entry: BookEntry): void {
    if (entry.userId !== null) this.#byUserId.set(`${entry.wabaId} ${entry.userId}`, entry);
    if (entry.waId !== null) this.#byWaId.set(`${entry.wabaId} ${entry.waId}`, entry);
  }
}

function isOlder(a: BookEntry, b: BookEntry): boolean {
  if (a.id === null || b.id === null) return a.id !== null;
  return BigInt(a.id) < BigInt(b.id);
}
