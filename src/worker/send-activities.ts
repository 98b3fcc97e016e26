import { makeSendMessageActivities } from '../activities/send-message/activities.ts';
import type { Config } from '../config/config.ts';
import type { Database } from '../database/database.ts';
import type { SecretBox } from '../domain/secret-box.ts';
import { counted } from '../metrics/result-counter.ts';
import type { WorkerMetrics } from '../metrics/worker-metrics.ts';
import { openObjectStore } from '../storage/object-store.ts';
import { openSendClient } from '../upstream/graph-client.ts';
import type { Logger } from './logger.ts';

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
