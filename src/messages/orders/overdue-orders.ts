import type { Config } from '../../platform/config/config.ts';
import type { SecretBox } from '../../platform/crypto/secret-box.ts';
import { openGraphClient } from '../../platform/graph/graph-client.ts';
import type { Logger } from '../../platform/logger.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { releaseOverdueOrders } from './release-order.ts';

/** Orders do not wait for Temporal for long; one worker sees to that. */
export function startOrderRelease(
  config: Config,
  tools: { database: Database; secretBox: SecretBox; logger: Logger; isLeader: () => boolean },
): Loop {
  const { database, secretBox, logger, isLeader } = tools;
  const graph = openGraphClient(config);
  const release = { database, secretBox, graph, publicUrl: config.api.publicUrl };
  const loop = startLoop({
    name: 'order-release',
    pollMs: 1_000,
    logger,
    turn: async () => isLeader() && (await releaseOverdueOrders(release)),
  });
  return { ...loop, stop: () => loop.stop().then(() => graph.close()) };
}
