/** How many requests are worked on at a time: of one caller, and of all. */
const PLACES = { ofOne: 8, ofAll: 64 };

/** Places for requests by key: one caller cannot take those of the others. */
export function makeRequestPlaces() {
  const taken = new Map<string, number>();
  let ofAll = 0;
  return {
    /** False: there is none for this key now. */
    take(key: string): boolean {
      const ofOne = taken.get(key) ?? 0;
      if (ofOne >= PLACES.ofOne || ofAll >= PLACES.ofAll) return false;
      taken.set(key, ofOne + 1);
      ofAll += 1;
      return true;
    },
    leave(key: string): void {
      const ofOne = taken.get(key) ?? 0;
      if (ofOne <= 1) taken.delete(key);
      else taken.set(key, ofOne - 1);
      ofAll -= 1;
    },
  };
}
