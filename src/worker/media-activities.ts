import { makeEnrichOrderActivities } from '../activities/enrich-order/activities.ts';
import { makeNumberActivities } from '../activities/refresh-numbers/activities.ts';
import { makeStoreInboundMediaActivities } from '../activities/store-inbound-media/activities.ts';
import type { Config } from '../config/config.ts';
import type { Database } from '../database/database.ts';
import type { SecretBox } from '../domain/secret-box.ts';
import { counted } from '../metrics/result-counter.ts';
import type { WorkerMetrics } from '../metrics/worker-metrics.ts';
import { openObjectStore } from '../storage/object-store.ts';
import { openGraphClient } from '../upstream/graph-client.ts';
import type { Logger } from './logger.ts';

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
