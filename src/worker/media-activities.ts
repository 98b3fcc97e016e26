import { makeEnrichOrderActivities } from '../activities/enrich-order.ts';
import { makeNumberActivities } from '../activities/refresh-numbers.ts';
import { makeStoreInboundMediaActivities } from '../activities/store-inbound-media.ts';
import type { Config } from '../platform/config/config.ts';
import type { SecretBox } from '../platform/crypto/secret-box.ts';
import { openGraphClient } from '../platform/graph/graph-client.ts';
import type { Logger } from '../platform/logger.ts';
import { counted } from '../platform/metrics/result-counter.ts';
import { openObjectStore } from '../platform/object-store/object-store.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { WorkerMetrics } from './metrics/worker-metrics.ts';

/** The activities for inbound files, and for look-ups of orders and phone numbers. `close` ends their connections. */
export function openMediaActivities(
  config: Config,
  tools: { database: Database; secretBox: SecretBox; logger: Logger },
  metrics: WorkerMetrics,
) {
  const graph = openGraphClient(config);
  const objectStore = openObjectStore(config.objectStore);
  const shared = { ...tools, graph, publicUrl: config.api.publicUrl };
  const { maxBytes } = config.media;
  const media = makeStoreInboundMediaActivities({ ...shared, objectStore, maxBytes });
  const fetchAndStoreMedia = counted(media.fetchAndStoreMedia, metrics.mediaDownload);
  const orderActivities = { ...makeEnrichOrderActivities(shared), ...makeNumberActivities(shared) };
  const close = async () => {
    await graph.close();
    objectStore.close();
  };
  return { activities: { ...media, fetchAndStoreMedia }, orderActivities, close };
}
