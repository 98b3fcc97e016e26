import { type ApiKeyState, findApiKeys } from '../../keys/api-key-store.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { createBatchedLookup } from '../plugins/batched-lookup.ts';

/** Connections that look-ups of keys take at most. */
const CONNECTIONS = { usual: 2, doubtful: 1 };

/** Finds a key by its hash. What is likely to be made up goes in a lane of its own and holds up no other. */
export type KeyLookup = (keyHash: Buffer, isDoubtful?: boolean) => Promise<ApiKeyState | null>;

/** Looks API keys up, each time afresh: a key that is revoked is refused at once. */
export function createKeyLookup(database: Database): KeyLookup {
  const find = async (hashes: readonly string[]) => {
    const states = await findApiKeys(
      database,
      hashes.map((hash) => Buffer.from(hash, 'hex')),
    );
    return new Map(states.map((state) => [state.keyHash.toString('hex'), state]));
  };
  const usual = createBatchedLookup({ find, maxUnderWay: CONNECTIONS.usual });
  const doubtful = createBatchedLookup({ find, maxUnderWay: CONNECTIONS.doubtful });
  return (keyHash, isDoubtful = false) => (isDoubtful ? doubtful : usual)(keyHash.toString('hex'));
}
