/** Something that all clients share and that each of them can hold a part of: memory, connections. */
export type SharedCapacity = {
  /** Begins to hold; `drop` is called when what is held is needed for others, and nothing is held any more then. */
  hold(owner: string, drop: () => void): Holding;
};

export type Holding = {
  /** Takes more; makes room at the cost of others, or of this one if it is the first to go. */
  grow(amount: number): void;
  /** Holds this much from now on, and can no longer be dropped. */
  settle(amount: number): void;
  /** Releases everything; may be called again. */
  end(): void;
};

type Limits = { capacity: () => number; ownerShare: number };
type Entry = { owner: Owner; amount: number; state: 'held' | 'settled' | 'over'; drop: () => void };
/** `held`: those of its entries that can be dropped; `settled`: the amount of the others. */
type Owner = { name: string; amount: number; entries: number; held: Set<Entry>; settled: number };
type Pool = { owners: Map<string, Owner>; held: Set<Entry>; greedy: Set<Owner>; total: number };

/**
 * When there is no room, the oldest holding is dropped, first those of an owner with more than `ownerShare`. So something
 * held for a time t is lost only when the whole capacity is taken again within t. A newcomer is dropped itself only when
 * nothing else can be, or when the settled holdings of its owner take the owner's share.
 */
export function createSharedCapacity(limits: Limits): SharedCapacity {
  // Sets keep the order of insertion: the oldest is the first.
  const pool: Pool = { owners: new Map(), held: new Set(), greedy: new Set(), total: 0 };
  return {
    hold(name, drop) {
      const owner = pool.owners.get(name) ?? { name, amount: 0, entries: 0, held: new Set(), settled: 0 };
      const entry: Entry = { owner, amount: 0, state: 'held', drop };
      pool.owners.set(name, owner);
      pool.held.add(entry);
      owner.held.add(entry);
      owner.entries += 1;
      return {
        grow(amount) {
          if (entry.state !== 'held') return;
          add(pool, limits, entry, amount);
          if (owner.settled > 0 && owner.settled + entry.amount > limits.ownerShare)
            dropEntry(pool, limits, entry);
          makeRoom(pool, limits);
        },
        settle(amount) {
          if (entry.state === 'held') settleEntry(pool, limits, entry, amount);
        },
        end: () => endEntry(pool, limits, entry),
      };
    },
  };
}

function add(pool: Pool, { ownerShare }: Limits, entry: Entry, amount: number): void {
  const { owner } = entry;
  entry.amount += amount;
  owner.amount += amount;
  pool.total += amount;
  // What cannot be dropped makes no room.
  if (owner.amount > ownerShare && owner.held.size > 0) pool.greedy.add(owner);
  else pool.greedy.delete(owner);
}

function settleEntry(pool: Pool, limits: Limits, entry: Entry, amount: number): void {
  entry.state = 'settled';
  pool.held.delete(entry);
  entry.owner.held.delete(entry);
  entry.owner.settled += amount;
  add(pool, limits, entry, amount - entry.amount);
}

function endEntry(pool: Pool, limits: Limits, entry: Entry): void {
  if (entry.state === 'over') return;
  const { owner } = entry;
  if (entry.state === 'settled') owner.settled -= entry.amount;
  entry.state = 'over';
  pool.held.delete(entry);
  owner.held.delete(entry);
  owner.entries -= 1;
  add(pool, limits, entry, -entry.amount);
  if (owner.entries === 0) pool.owners.delete(owner.name);
}

function dropEntry(pool: Pool, limits: Limits, entry: Entry): void {
  endEntry(pool, limits, entry);
  entry.drop();
}

function makeRoom(pool: Pool, limits: Limits): void {
  while (pool.total > limits.capacity()) {
    const [owner] = pool.greedy;
    const [oldest] = owner === undefined ? pool.held : owner.held;
    if (oldest === undefined) return;
    dropEntry(pool, limits, oldest);
  }
}
