import { recordAlert } from '../ops/alerts/alert-notices.ts';
import {
  type AlertActivityTools,
  attemptAlert,
  type SendEndpointAlertInput,
} from '../ops/alerts/attempt-alert.ts';
import { attemptSending, giveUpSending, type SendingEnd } from '../platform/temporal/activity-kit.ts';

export type AlertActivities = ReturnType<typeof makeAlertActivities>;

/** 5 s, 30 s, 2 min, 10 min, 30 min, 2 h, 6 h: an older alert helps no one. */
const ALERT_SCHEDULE_MS = [5, 30, 120, 600, 1_800, 7_200, 21_600].map((seconds) => seconds * 1_000);

export function makeAlertActivities({ alertScheduleMs = ALERT_SCHEDULE_MS, ...tools }: AlertActivityTools) {
  return {
    /** Sends until the operations URL takes it or the schedule ends. */
    sendAlert: async (input: SendEndpointAlertInput): Promise<SendingEnd> =>
      await attemptSending(() => attemptAlert(tools, alertScheduleMs, input)),

    giveUpAlert: async (input: SendEndpointAlertInput): Promise<string> =>
      await giveUpSending((error) =>
        recordAlert(tools.database, input, { state: 'given_up', attempted: false, error }),
      ),
  };
}
