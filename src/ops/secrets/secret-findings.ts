import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import { type Finding, fail, ok, unlessFine, warn } from '../health/findings.ts';
import { secretStatus, unreadableSecrets } from './secret-keys.ts';

/** For the doctor: whether every stored secret opens, and which keys nothing needs. */
export async function findSecrets(tools: SealedDatabase): Promise<Finding[]> {
  const [{ currentKeyId, stored, retirableKeyIds }, unreadable] = await Promise.all([
    secretStatus(tools),
    unreadableSecrets(tools),
  ]);
  const putBack = 'put that key back into HELIOGRAPH_ENCRYPTION_KEYS';
  const takeOut = 'take them out of HELIOGRAPH_ENCRYPTION_KEYS';
  const count = stored.reduce((sum, one) => sum + one.count, 0);
  return unlessFine(
    ok(`${count} stored secrets open; ${currentKeyId} encrypts`),
    ...unreadable.map(({ table, column, keyId }) =>
      fail(`${table}.${column} has secrets of key ${keyId} that do not open`, putBack),
    ),
    retirableKeyIds.length > 0 && warn(`nothing needs the keys ${retirableKeyIds.join(', ')}`, takeOut),
  );
}
