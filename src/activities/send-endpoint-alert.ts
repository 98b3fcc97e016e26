import type { Database } from '../platform/postgres/database.ts';
import { finishTask } from '../platform/temporal/workflow-tasks.ts';

export type SendEndpointAlertInput = { wabaId: string; alertId: string };

export type AlertActivities = ReturnType<typeof makeAlertActivities>;

/** Ends the runs that an earlier release started: the loop `operations-hooks` sends alerts. */
export function makeAlertActivities({ database }: { database: Database }) {
  const end = async ({ alertId }: SendEndpointAlertInput): Promise<string> => {
    await database.transaction((trx) => finishTask(trx, `endpoint-alert/${alertId}`));
    return 'The loop operations-hooks sends it.';
  };
  return {
    sendAlert: async (input: SendEndpointAlertInput) => ({ failed: false, summary: await end(input) }),
    giveUpAlert: end,
  };
}
