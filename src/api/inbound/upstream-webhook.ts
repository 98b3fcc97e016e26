import type { FastifyInstance } from 'fastify';
import { insertBodies } from '../../inbound/inbox/inbox.ts';
import type { Config } from '../../platform/config/config.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { isDataError } from '../../platform/postgres/error-class.ts';
import { createBodyBatcher } from './body-batcher.ts';
import { receiveWebhook } from './receive-webhook.ts';
import { verificationHandshake } from './verification-handshake.ts';

/** Less than the 5 seconds after which upstream is said to give up. */
const COMMIT_TIMEOUT_MS = 4_000;

/** An insert that takes longer than upstream waits is of no use; what is not even cancelled has lost its server. */
export const INGRESS_TIMEOUTS = { statementMs: COMMIT_TIMEOUT_MS, answerMs: COMMIT_TIMEOUT_MS + 1_000 };

/** More than the time-out of the answer: what hangs longer has lost its connection. */
const ABANDON_AFTER_MS = INGRESS_TIMEOUTS.answerMs + 1_000;

/**
 * Keeps some of the bodies and takes them in in one transaction; the others, and those unless `isKept`, which never
 * rejects, are to be kept the usual way.
 */
export type KeepAtOnce = (bodies: readonly Buffer[]) => {
  usual: readonly Buffer[];
  tried: readonly Buffer[];
  isKept: Promise<boolean>;
};

/** Where the upstream platform sends its webhooks. Nothing is parsed here and nothing is asked of Temporal. */
export async function upstreamWebhookRoutes(
  scope: FastifyInstance,
  { config, database, keepAtOnce }: { config: Config; database: Database; keepAtOnce?: KeepAtOnce },
): Promise<void> {
  const batcher = createBodyBatcher({
    store: async (bodies) => {
      if (keepAtOnce === undefined) return await insertBodies(database, bodies);
      const { usual, tried, isKept } = keepAtOnce(bodies);
      await Promise.all([
        usual.length === 0 ? null : insertBodies(database, usual),
        isKept.then((kept) => (kept ? null : insertBodies(database, tried))),
      ]);
    },
    isTransient: (error) => !isDataError(error),
    onPoison: (error, sizeBytes) =>
      scope.log.error({ err: error, sizeBytes }, 'an upstream body cannot be stored'),
    maxBatchBodies: 500,
    maxBatchBytes: 4 * 1024 * 1024,
    maxWaitingBytes: 64 * 1024 * 1024,
    commitTimeoutMs: COMMIT_TIMEOUT_MS,
    abandonAfterMs: ABANDON_AFTER_MS,
  });
  scope.addHook('onClose', async () => await batcher.drained());
  verificationHandshake(scope, config.upstream.verifyToken);
  receiveWebhook(scope, { appSecrets: config.upstream.appSecrets, batcher, database });
}
