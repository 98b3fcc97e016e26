import { REFRESH_NUMBERS } from '../features/accounts/followed-numbers.ts';
import { APPROVE_API_KEY } from '../features/keys/key-request-store.ts';
import { SEND_MAIL } from '../features/mail/mails.ts';
import { SEND_BROADCAST } from '../features/messages/broadcasts/switch-broadcast.ts';
import { STORE_INBOUND_MEDIA } from '../features/messages/media/media.ts';
import { ENRICH_ORDER } from '../features/messages/orders/orders.ts';
import { SEND_MESSAGE } from '../features/messages/send/send-task.ts';
import { SEND_SCHEDULED } from '../features/messages/send/shared-moment.ts';
import { REPLAY_DELIVERIES } from '../features/replays/replay-steps.ts';
import { SET_UP_NUMBER } from '../features/setup-links/setup-task.ts';
import { ERASE_TASKS } from '../ops/erasures/erasure-store.ts';
import type { TaskKind } from '../platform/temporal/workflow-tasks.ts';

/** An earlier release may have added some. */
const SEND_ENDPOINT_ALERT: TaskKind = {
  workflowType: 'sendEndpointAlert',
  summary: 'ended: alerts need no run',
};

export const TASK_KINDS: readonly TaskKind[] = [
  STORE_INBOUND_MEDIA,
  ENRICH_ORDER,
  SEND_MESSAGE,
  SEND_BROADCAST,
  SEND_SCHEDULED,
  SEND_MAIL,
  SEND_ENDPOINT_ALERT,
  REPLAY_DELIVERIES,
  APPROVE_API_KEY,
  REFRESH_NUMBERS,
  SET_UP_NUMBER,
  ...Object.values(ERASE_TASKS),
];
