/** Something that all clients share and that each of them can hold a part of: memory, connections. */
export type SharedCapacity = {
  /** Begins to hold; `drop` is called when what is held is needed for others, and nothing is held any more then. */
  hold(owner: string, drop: () => void): Holding;
};

export type Holding = {
  /** Takes more; makes room at the cost of others, or of this one if it is the first to go. */
  grow(amount: number): void;
  /** Gives everything back. Twice is once. */
  end(): void;
};

type Entry = { owner: Owner; amount: number; drop: () => void };
type Owner = { name: string; amount: number; entries: Set<Entry> };

/**
 * Nobody who comes is refused: when there is no room, who has held longest goes, first of all those of an owner with
 * more than `ownerShare`. So something held for a time t is lost only when the whole capacity is taken anew within t.
 */
export function createSharedCapacity(options: {
  capacity: () => number;
  ownerShare: number;
}): SharedCapacity {
  // Sets keep the order of insertion: the oldest is the first.
  const entries = new Set<Entry>();
  const owners = new Map<string, Owner>();
  const greedy = new Set<Owner>();
  let total = 0;

  const change = (entry: Entry, amount: number): void => {
    const { owner } = entry;
    entry.amount += amount;
    owner.amount += amount;
    total += amount;
    if (owner.amount > options.ownerShare) greedy.add(owner);
    else greedy.delete(owner);
  };

  const end = (entry: Entry): void => {
    if (!entries.delete(entry)) return;
    change(entry, -entry.amount);
    entry.owner.entries.delete(entry);
    if (entry.owner.entries.size === 0) owners.delete(entry.owner.name);
  };

  const makeRoom = (): void => {
    while (total > options.capacity()) {
      const [owner] = greedy;
      const [oldest] = owner === undefined ? entries : owner.entries;
      if (oldest === undefined) return;
      end(oldest);
      oldest.drop();
    }
  };

  return {
    hold(name, drop) {
      const owner = owners.get(name) ?? { name, amount: 0, entries: new Set<Entry>() };
      owners.set(name, owner);
      const entry = { owner, amount: 0, drop };
      owner.entries.add(entry);
      entries.add(entry);
      return {
        grow(amount) {
          if (!entries.has(entry)) return;
          change(entry, amount);
          makeRoom();
        },
        end: () => end(entry),
      };
    },
  };
}
