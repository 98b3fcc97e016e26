import { AsyncLocalStorage } from 'node:async_hooks';
import type { Database } from '../../platform/postgres/database.ts';

/** Who is served: a member, such as a WABA or a person, of an owner, such as a tenant. */
export type ShareOwner = {
  name: string;
  member: string;
  /** Served over the connections that only operators have. */
  isOperator?: boolean;
};

export type ConnectionShares = {
  /** What is asked of it counts for the owner who is being served. */
  database: Database;
  /** Does `work`, and all that follows from it, on the share of an owner. */
  serve(owner: ShareOwner, work: () => void): void;
};

/** The waiting work of an owner by member, the member whose turn is next first. */
type Line = { running: number; waiting: Map<string, (() => void)[]> };

/** `perOwner`: statements or transactions under way at once; more wait in the owner's line, where members take turns. */
export function shareConnections(
  database: Database,
  perOwner: number,
  operatorDatabase: Database = database,
): ConnectionShares {
  const served = new AsyncLocalStorage<ShareOwner | null>();
  const lines = new Map<string, Line>();

  const inTurn = async <T>(work: (database: Database) => Promise<T>): Promise<T> => {
    const owner = served.getStore() ?? null;
    if (owner === null) return await work(database);
    const line = lines.get(owner.name) ?? { running: 0, waiting: new Map() };
    lines.set(owner.name, line);
    if (line.running < perOwner) line.running += 1;
    // Work that ends passes its place on.
    else await new Promise<void>((resolve) => enqueue(line, owner.member, resolve));
    try {
      return await work(owner.isOperator === true ? operatorDatabase : database);
    } finally {
      const next = nextInLine(line);
      if (next !== null) next();
      else line.running -= 1;
      if (line.running === 0) lines.delete(owner.name);
    }
  };

  return {
    database: {
      raw: (text, bindings) => inTurn((chosen) => chosen.raw(text, bindings)),
      // Within a transaction nothing waits for a second place, or those who have one could all wait for another.
      transaction: (work) =>
        inTurn((chosen) => chosen.transaction((trx) => served.run(null, () => work(trx)))),
      notify: (channel, payload) => database.notify(channel, payload),
    },
    serve: (owner, work) => served.run(owner, work),
  };
}

function enqueue({ waiting }: Line, member: string, begin: () => void): void {
  const own = waiting.get(member);
  if (own === undefined) waiting.set(member, [begin]);
  else own.push(begin);
}

/** The first work of the member whose turn it is, who then goes to the end of the line. */
function nextInLine({ waiting }: Line): (() => void) | null {
  for (const [member, own] of waiting) {
    waiting.delete(member);
    const next = own.shift();
    if (own.length > 0) waiting.set(member, own);
    if (next !== undefined) return next;
  }
  return null;
}
