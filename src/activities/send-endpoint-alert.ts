import {
  type AlertActivityTools,
  attemptAlert,
  type SendEndpointAlertInput,
} from '../alerts/attempt-alert.ts';
import { recordAlert } from '../notices/alert-notices.ts';
import { awaitingDatabase, notYet, withHeartbeat } from '../platform/temporal/activity-kit.ts';

export type AlertActivities = ReturnType<typeof makeAlertActivities>;

export type AlertEnd = { failed: boolean; summary: string };

/** 5 s, 30 s, 2 min, 10 min, 30 min, 2 h, 6 h: an older alert helps no one. */
const ALERT_SCHEDULE_MS = [5, 30, 120, 600, 1_800, 7_200, 21_600].map((seconds) => seconds * 1_000);

export function makeAlertActivities({ alertScheduleMs = ALERT_SCHEDULE_MS, ...tools }: AlertActivityTools) {
  return {
    /** Sends until the operations URL takes it or the schedule ends; each failure carries the wait until the next. */
    async sendAlert(input: SendEndpointAlertInput): Promise<AlertEnd> {
      const attempt = () => attemptAlert(tools, alertScheduleMs, input);
      const outcome = await withHeartbeat(() => awaitingDatabase('NotYetSent', attempt));
      if (outcome.state !== 'waiting')
        return { failed: outcome.state === 'given_up', summary: outcome.summary };
      const next = new Date(Date.now() + outcome.delayMs).toISOString();
      throw notYet('NotYetSent', `${outcome.summary} Next at ${next}.`, outcome.delayMs);
    },

    async giveUpAlert(input: SendEndpointAlertInput): Promise<string> {
      const error = 'given up: the workflow was cancelled';
      await awaitingDatabase('NotYetSent', () =>
        recordAlert(tools.database, input, { state: 'given_up', attempted: false, error }),
      );
      return error;
    },
  };
}
