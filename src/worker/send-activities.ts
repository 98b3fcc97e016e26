import { makeSendMessageActivities } from '../activities/send-message/activities.ts';
import type { Config } from '../config/config.ts';
import type { Database } from '../database/database.ts';
import type { SecretBox } from '../domain/secret-box.ts';
import { openSendClient } from '../upstream/graph-client.ts';
import type { Logger } from './logger.ts';

/** The activities that send messages. `close` ends their connections. */
export function openSendActivities(
  config: Config,
  tools: { database: Database; secretBox: SecretBox; logger: Logger },
) {
  const sender = openSendClient(config);
  const activities = makeSendMessageActivities({ ...tools, sender, sending: config.sending });
  return { activities, close: sender.close };
}
