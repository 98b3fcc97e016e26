import { onTestFinished } from 'vitest';
import { startHookSender } from '../../../../src/ops/alerts/operations-sender.ts';
import type { Config } from '../../../../src/platform/config/config.ts';
import { makeSecretBox, parseEncryptionKeys } from '../../../../src/platform/crypto/secret-box.ts';
import { makeAddressGuard } from '../../../../src/platform/http/outbound-url.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { makeHttpSender } from '../../../../src/platform/sender/http-sender.ts';
import { silentLogger } from '../../../support/silent-logger.ts';

export const LOOPBACK = {
  HELIOGRAPH_WEBHOOK_ALLOW_HTTP: 'true',
  HELIOGRAPH_WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
};

/** The loop of a worker; ends with the test. */
export function startHooks(database: Database, config: Config): () => Promise<void> {
  const guard = makeAddressGuard({ allowCidrs: ['127.0.0.0/8'] });
  const sender = makeHttpSender({ guard, allowHttp: true, connectTimeoutMs: 500, totalTimeoutMs: 1_000 });
  const secretBox = makeSecretBox(parseEncryptionKeys(config.encryptionKeys));
  const loop = startHookSender({ database, sender, secretBox, logger: silentLogger, timeoutMs: 1_000 });
  const stop = async () => {
    await loop.stop();
    await sender.close();
  };
  onTestFinished(stop);
  return stop;
}

/** No wait for what waits for its next attempt. */
export async function retryHooksNow(database: Database): Promise<void> {
  await execute(
    database,
    `update operations_hooks
        set due_at = now(), held = (select coalesce(jsonb_agg(h || jsonb_build_object('dueAt', now())), '[]')
                                      from jsonb_array_elements(held) as h)
      where lease is null`,
  );
}
