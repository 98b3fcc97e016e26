/** A list that forgets its oldest entries. */
export type BoundedList<Entry> = {
  add: (entry: Entry) => void;
  list: () => Entry[];
  /** Returns how many there were. */
  clear: () => number;
};

/** Creates an empty list of at most `maxEntries`. */
export function createBoundedList<Entry>(maxEntries: number): BoundedList<Entry> {
  let entries: Entry[] = [];
  return {
    add: (entry) => {
      entries.push(entry);
      if (entries.length > maxEntries) {
        entries.shift();
      }
    },
    list: () => entries,
    clear: () => {
      const count = entries.length;
      entries = [];
      return count;
    },
  };
}
