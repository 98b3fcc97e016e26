import type { Logger } from 'pino';
import type { Config } from '../../../platform/config/config.ts';
import { parseEncryptionKeys } from '../../../platform/crypto/secret-box.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { setUpPath } from '../../../users/first-operator.ts';

/** Logs the link that makes the first operator, while there is none. Nothing waits for it. */
export async function announceSetUp(config: Config, database: Database, logger: Logger): Promise<void> {
  try {
    const path = await setUpPath({ database, encryptionKeys: parseEncryptionKeys(config.encryptionKeys) });
    if (path === null) return;
    logger.info(
      { url: `${config.api.publicUrl}${path}` },
      'the portal has no users: this link makes the first operator',
    );
  } catch (error) {
    logger.warn({ err: error }, 'whether the portal has users is not known');
  }
}
