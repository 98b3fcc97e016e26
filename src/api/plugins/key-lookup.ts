import { type ApiKeyState, findApiKeys } from '../../database/api-keys.ts';
import type { Database } from '../../database/database.ts';

/** More than one, so that a connection that hangs does not hold up every request. */
const MAX_UNDER_WAY = 4;

type Wanted = { keyHash: Buffer; found: PromiseWithResolvers<ApiKeyState | null> };

/**
 * Looks API keys up, each time afresh. Requests that come while lookups are under way share the next one: a statement
 * for each of them is most of what a small request costs. No lookup begins before its request has come, so a key that
 * is revoked is refused at once.
 */
export function createKeyLookup(database: Database): (keyHash: Buffer) => Promise<ApiKeyState | null> {
  let waiting = new Map<string, Wanted>();
  let underWay = 0;

  const next = async (): Promise<void> => {
    if (underWay >= MAX_UNDER_WAY || waiting.size === 0) return;
    const batch = waiting;
    waiting = new Map();
    underWay += 1;
    try {
      const states = await findApiKeys(
        database,
        [...batch.values()].map(({ keyHash }) => keyHash),
      );
      const byHash = new Map(states.map((state) => [state.keyHash.toString('base64'), state]));
      for (const [hash, { found }] of batch) found.resolve(byHash.get(hash) ?? null);
    } catch (error) {
      for (const { found } of batch.values()) found.reject(error);
    } finally {
      underWay -= 1;
      void next();
    }
  };

  return (keyHash) => {
    const hash = keyHash.toString('base64');
    const known = waiting.get(hash);
    if (known !== undefined) return known.found.promise;
    const found = Promise.withResolvers<ApiKeyState | null>();
    waiting.set(hash, { keyHash, found });
    // Requests that were read together are looked up together.
    setImmediate(() => void next());
    return found.promise;
  };
}
