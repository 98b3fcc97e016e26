import { REFRESH_NUMBERS } from '../accounts/followed-numbers.ts';
import { SEND_ENDPOINT_ALERT } from '../engine/notices/alert-notices.ts';
import { ERASE_TASKS } from '../erasures/erasure-store.ts';
import { APPROVE_API_KEY } from '../keys/key-request-store.ts';
import { SEND_MAIL } from '../mail/mails.ts';
import { STORE_INBOUND_MEDIA } from '../messages/media/media.ts';
import { ENRICH_ORDER } from '../messages/orders/orders.ts';
import { SEND_MESSAGE } from '../messages/send/send-task.ts';
import type { TaskKind } from '../platform/temporal/workflow-tasks.ts';
import { REPLAY_DELIVERIES } from '../replays/replay-steps.ts';

export const TASK_KINDS: readonly TaskKind[] = [
  STORE_INBOUND_MEDIA,
  ENRICH_ORDER,
  SEND_MESSAGE,
  SEND_MAIL,
  SEND_ENDPOINT_ALERT,
  REPLAY_DELIVERIES,
  APPROVE_API_KEY,
  REFRESH_NUMBERS,
  ...Object.values(ERASE_TASKS),
];
