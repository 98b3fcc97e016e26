import { makeSendMessageActivities } from '../activities/send-message.ts';
import type { Config } from '../platform/config/config.ts';
import type { SecretBox } from '../platform/crypto/secret-box.ts';
import { openSendClient } from '../platform/graph/graph-client.ts';
import type { Logger } from '../platform/logger.ts';
import { counted } from '../platform/metrics/result-counter.ts';
import { openObjectStore } from '../platform/object-store/object-store.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { WorkerMetrics } from './metrics/worker-metrics.ts';

/** The activities that send messages. `close` ends their connections. */
export function openSendActivities(
  config: Config,
  tools: { database: Database; secretBox: SecretBox; logger: Logger },
  metrics: WorkerMetrics,
) {
  const sender = openSendClient(config);
  const objectStore = openObjectStore(config.objectStore);
  const { sending } = config;
  const sends = makeSendMessageActivities({ ...tools, sender, objectStore, sending });
  const sendToUpstream = counted(sends.sendToUpstream, metrics.send);
  const close = async () => {
    await sender.close();
    objectStore.close();
  };
  return { activities: { ...sends, sendToUpstream }, close };
}
