import { AsyncLocalStorage } from 'node:async_hooks';
import type { Database } from '../../platform/postgres/database.ts';

/** Connections that are shared out, so that no owner takes all of them. */
export type ConnectionShares = {
  /** What is asked of it counts for the owner who is being served. */
  database: Database;
  /** Does `work`, and all that follows from it, on the share of an owner. */
  serve(owner: string, work: () => void): void;
};

type Line = { running: number; waiting: (() => void)[] };

/** No owner has more than `perOwner` statements or transactions under way; more of them wait in his own line. */
export function shareConnections(database: Database, perOwner: number): ConnectionShares {
  const served = new AsyncLocalStorage<string | null>();
  const lines = new Map<string, Line>();

  const inTurn = async <T>(work: () => Promise<T>): Promise<T> => {
    const owner = served.getStore() ?? null;
    if (owner === null) return await work();
    const line = lines.get(owner) ?? { running: 0, waiting: [] };
    lines.set(owner, line);
    if (line.running < perOwner) line.running += 1;
    // One that ends passes its place on.
    else await new Promise<void>((resolve) => line.waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = line.waiting.shift();
      if (next !== undefined) next();
      else line.running -= 1;
      if (line.running === 0) lines.delete(owner);
    }
  };

  return {
    database: {
      raw: (text, bindings) => inTurn(() => database.raw(text, bindings)),
      // Within a transaction nothing waits for a second place, or those who have one could all wait for another.
      transaction: (work) => inTurn(() => database.transaction((trx) => served.run(null, () => work(trx)))),
      notify: (channel, payload) => database.notify(channel, payload),
    },
    serve: (owner, work) => served.run(owner, work),
  };
}
