import { askForNumbers } from '../../../src/features/accounts/followed-numbers.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { execute } from '../../../src/platform/postgres/sql.ts';
import { taskQueues } from '../../../src/platform/temporal/workflow-options.ts';
import { ensureNumberSchedule, numberScheduleId } from '../../../src/worker/number-schedule.ts';
import { textsBody } from '../../integration/ingest/number-stack.ts';
import { eventually } from '../webhook-receiver.ts';
import { ended, type Recorded, started } from './record-deliveries.ts';
import { type RecordingStack, WABA } from './recording-stack.ts';

/** Runs of `refreshNumbers` and `refreshAllNumbers`. */
export async function recordNumbers(stack: RecordingStack): Promise<Recorded> {
  const { client, database } = stack;
  const taskQueue = taskQueues('heliograph').deliveries;
  await ensureNumberSchedule({ client, taskQueue });
  const schedule = client.schedule.getHandle(numberScheduleId(taskQueue));
  await schedule.trigger();
  let daily = '';
  await eventually('the daily turn', async () => {
    daily = (await schedule.describe()).info.recentActions[0]?.action.workflow.workflowId ?? '';
    return daily !== '';
  });
  await ended(stack, daily);
  await execute(database, `delete from workflow_tasks where workflow_type = 'refreshNumbers'`);
  await database.transaction((trx) => askForNumbers(trx, [WABA]));
  const listed = `waba-numbers/${WABA}`;
  await started(stack, listed);
  await ended(stack, listed);
  const waiting = 'waba-numbers/900000000000202';
  const text = { id: 'wamid.W', phoneNumberId: '800000000000998' };
  await insertBodies(database, [textsBody('900000000000202', text)]);
  await started(stack, waiting);
  await eventually('it waits', async () => {
    const { events } = await client.workflow.getHandle(waiting).fetchHistory();
    return (events ?? []).filter((event) => event.timerStartedEventAttributes).length > 1;
  });
  await client.workflow.getHandle(waiting).cancel();
  await ended(stack, waiting);
  return {
    'refresh-all-numbers-daily': daily,
    'refresh-numbers-listed': listed,
    'refresh-numbers-waiting-for-a-token': waiting,
  };
}
