/** No transaction that queues deliveries takes longer: its statements, and its pauses, are bounded by far less. */
const LAG_MS = 120_000;

/**
 * Where looks for the oldest pending delivery begin. With an old snapshot (a dump, a forgotten transaction) a look from the
 * beginning walks over everything that was delivered since.
 */
export type PositionFloor = {
  /** The position to look from. */
  from(): string;
  /** A look found this position (null: nothing), and `last` had been drawn by then. */
  looked(look: { last: string; oldest: string | null }): void;
};

/** The first look begins at the beginning. */
export function makePositionFloor(): PositionFloor {
  let floor = 0n;
  let notes: { atMs: number; last: bigint }[] = [];
  return {
    from: () => String(floor),
    looked({ last, oldest }) {
      const nowMs = performance.now();
      // The database was restored to an earlier moment.
      if (BigInt(last) + 1n < floor) {
        floor = 0n;
        notes = [];
      }
      // What had been drawn then is committed by now, or never will be: only what the look found can be older.
      const settled = notes.findLast(({ atMs }) => atMs <= nowMs - LAG_MS);
      if (settled !== undefined) {
        const free = settled.last + 1n;
        floor = oldest !== null && BigInt(oldest) < free ? BigInt(oldest) : free;
        notes = notes.slice(notes.indexOf(settled));
      }
      notes.push({ atMs: nowMs, last: BigInt(last) });
    },
  };
}
