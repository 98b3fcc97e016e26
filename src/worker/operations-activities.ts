import { type KeyRequestActivityTools, makeKeyRequestActivities } from '../activities/approve-api-key.ts';
import { makeReplayActivities, type ReplayActivityTools } from '../activities/replay-deliveries.ts';
import { makeAlertActivities } from '../activities/send-endpoint-alert.ts';
import type { AlertActivityTools } from '../endpoints/alerts/attempt-alert.ts';

/** The activities for the task queue of operations: replays, endpoint alerts, key requests. They open nothing of their own. */
export function openOperationsActivities(
  tools: ReplayActivityTools & AlertActivityTools & KeyRequestActivityTools,
) {
  return {
    ...makeReplayActivities(tools),
    ...makeAlertActivities(tools),
    ...makeKeyRequestActivities(tools),
  };
}
