import {
  makeReplayActivities,
  type ReplayActivityTools,
} from '../activities/replay-deliveries/activities.ts';
import {
  type AlertActivityTools,
  makeAlertActivities,
} from '../activities/send-endpoint-alert/activities.ts';

/** The activities for the task queue of operations: replays and endpoint alerts. They open nothing of their own. */
export function openOperationsActivities(tools: ReplayActivityTools & AlertActivityTools) {
  return { ...makeReplayActivities(tools), ...makeAlertActivities(tools) };
}
