import { type KeyRequestActivityTools, makeKeyRequestActivities } from '../activities/approve-api-key.ts';
import { makeDeliverEventActivities } from '../activities/deliver-event.ts';
import { makeDeliverSessionActivities } from '../activities/deliver-session.ts';
import { makeEndpointTroubleActivities } from '../activities/endpoint-trouble.ts';
import { makeEnrichOrderActivities } from '../activities/enrich-order.ts';
import { type EraseActivityTools, makeEraseActivities } from '../activities/erase.ts';
import { makeNumberActivities } from '../activities/refresh-numbers.ts';
import { makeReplayActivities, type ReplayActivityTools } from '../activities/replay-deliveries.ts';
import { makeBroadcastActivities } from '../activities/send-broadcast.ts';
import { makeAlertActivities } from '../activities/send-endpoint-alert.ts';
import { makeMailActivities } from '../activities/send-mail.ts';
import { makeSendMessageActivities } from '../activities/send-message.ts';
import { makeSendScheduledActivities } from '../activities/send-scheduled.ts';
import { makeSetUpActivities } from '../activities/set-up-number.ts';
import { makeStoreInboundMediaActivities } from '../activities/store-inbound-media.ts';
import type { Delivery } from '../engine/deliveries/worker.ts';
import type { MailActivityTools } from '../features/mail/attempt-mail.ts';
import { makeMailSender } from '../features/mail/smtp.ts';
import { makeMediaUrls } from '../features/messages/media/media-urls.ts';
import { makeSend, makeSendMemory, type SendRun } from '../features/messages/send/make-send.ts';
import type { SendMessageInput } from '../features/messages/send/record-send.ts';
import type { Config } from '../platform/config/config.ts';
import type { SealedDatabase } from '../platform/crypto/sealed-database.ts';
import { parseEncryptionKeys } from '../platform/crypto/secret-box.ts';
import { openGraphClient, openSendClient } from '../platform/graph/graph-client.ts';
import type { Logger } from '../platform/logger.ts';
import { counted } from '../platform/metrics/metrics.ts';
import { type ObjectStore, openObjectStore } from '../platform/object-store/object-store.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { WorkerMetrics } from './metrics/worker-metrics.ts';

type ActivityTools = {
  database: Database;
  delivery: Delivery;
  objectStore: ObjectStore;
  logger: Logger;
  metrics: WorkerMetrics;
};

/** The activities of all workflows, by task queue. `close` ends the connections that they opened. */
export function openActivities(config: Config, tools: ActivityTools) {
  const { database, delivery, objectStore, logger, metrics } = tools;
  const { loop, runs, secretBox, stopping } = delivery;
  const shared = { database, secretBox, logger };
  const media = openMediaActivities(config, shared, metrics);
  const sends = openSendActivities(config, shared, metrics);
  const encryptionKeys = parseEncryptionKeys(config.encryptionKeys);
  const mailSender = config.mail.smtpUrl === '' ? null : makeMailSender(config.mail);
  return {
    activities: {
      deliver: {
        ...makeDeliverEventActivities({ database, loop, runs }),
        ...makeEndpointTroubleActivities({ database, publicUrl: config.api.publicUrl }),
      },
      session: makeDeliverSessionActivities({ loop, stopping }),
      operations: {
        ...openOperationsActivities({ ...shared, objectStore, encryptionKeys, mailSender }),
        ...sends.passActivities,
      },
      media: media.activities,
      orders: media.orderActivities,
      sends: sends.activities,
    },
    close: async () => {
      await media.close();
      await sends.close();
    },
  };
}

/** The activities for the task queue of operations but those that send many messages: replays, erasures, alerts, e-mails, key requests. They open no connection. */
export function openOperationsActivities(
  tools: ReplayActivityTools & KeyRequestActivityTools & EraseActivityTools & MailActivityTools,
) {
  return {
    ...makeEraseActivities(tools),
    ...makeReplayActivities(tools),
    ...makeAlertActivities(tools),
    ...makeKeyRequestActivities(tools),
    ...makeMailActivities(tools),
  };
}

function openSendActivities(
  config: Config,
  tools: SealedDatabase & { logger: Logger },
  metrics: WorkerMetrics,
) {
  const sender = openSendClient(config);
  const objectStore = openObjectStore(config.objectStore);
  const { sending } = config;
  const sendTools = { ...tools, sender, objectStore, sending };
  const memory = makeSendMemory();
  const send = counted(
    (input: SendMessageInput, run: SendRun) => makeSend(sendTools, input, { ...memory, ...run }),
    metrics.send,
  );
  const close = async () => {
    await sender.close();
    objectStore.close();
  };
  const passTools = { ...tools, sending, send };
  const passActivities = { ...makeBroadcastActivities(passTools), ...makeSendScheduledActivities(passTools) };
  return { activities: makeSendMessageActivities(sendTools, send), passActivities, close };
}

function openMediaActivities(
  config: Config,
  tools: SealedDatabase & { logger: Logger },
  metrics: WorkerMetrics,
) {
  const graph = openGraphClient(config);
  const objectStore = openObjectStore(config.objectStore);
  const shared = { ...tools, graph, publicUrl: config.api.publicUrl, upstream: config.upstream };
  const { maxBytes, urlTtlSeconds: ttlSeconds } = config.media;
  const mediaUrls = makeMediaUrls({ ...shared, ttlSeconds });
  const media = makeStoreInboundMediaActivities({ ...shared, objectStore, maxBytes, mediaUrls });
  const fetchAndStoreMedia = counted(media.fetchAndStoreMedia, metrics.mediaDownload);
  const orderActivities = {
    ...makeEnrichOrderActivities(shared),
    ...makeNumberActivities(shared),
    ...makeSetUpActivities(shared),
  };
  const close = async () => {
    await graph.close();
    objectStore.close();
  };
  return { activities: { ...media, fetchAndStoreMedia }, orderActivities, close };
}
