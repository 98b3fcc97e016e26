import type { Transaction } from '../../../platform/postgres/database.ts';
import { queryValue } from '../../../platform/postgres/sql.ts';
import { finishTask, insertWorkflowTasks, type TaskKind } from '../../../platform/temporal/workflow-tasks.ts';
import { takeOpen } from './scheduled-messages.ts';
import { type Pass, type PassTools, paceOfPass, sendInPass } from './send-pass.ts';

/** A number's scheduled messages for one moment; `sendAt` in ISO 8601. */
export type SharedMoment = { wabaId: string; phoneNumberId: string; sendAt: string };

/** So many have a workflow each, which Temporal starts at their time; thousands at once would hold up everything else in Temporal. */
const MOST_ALONE = 20;

export const SEND_SCHEDULED: TaskKind = {
  workflowType: 'sendScheduled',
  summary: 'send the many messages that are scheduled for one moment',
};

export function sharedMomentId({ phoneNumberId, sendAt }: Omit<SharedMoment, 'wabaId'>): string {
  return `scheduled/${phoneNumberId}/${sendAt}`;
}

/** The workflow that sends a message with the others of its moment, which is there now; null: the message has its own. */
export async function shareMoment(
  trx: Transaction,
  { wabaId, phoneNumberId, sendAt }: { wabaId: string; phoneNumberId: string; sendAt: Date },
): Promise<string | null> {
  // With this one, which is stored.
  const alone = await queryValue<number>(
    trx,
    `select cast(count(*) as integer) from (select from scheduled_messages
      where waba_id = :wabaId and send_at = :sendAt and is_open and phone_number_id = :phoneNumberId limit ${MOST_ALONE + 1}) as open`,
    { wabaId, phoneNumberId, sendAt },
  );
  if ((alone ?? 0) <= MOST_ALONE) return null;
  const argument = { wabaId, phoneNumberId, sendAt: sendAt.toISOString() };
  const workflowId = sharedMomentId(argument);
  const summary = `${SEND_SCHEDULED.summary}, ${argument.sendAt}`;
  await insertWorkflowTasks(trx, [
    { workflowId, kind: SEND_SCHEDULED, wabaId, eventId: workflowId, argument, summary, startsAt: sendAt },
  ]);
  return workflowId;
}

/** Sends the next messages of a moment; `waitMs`: when to go on; null: none is left. */
export async function stepSharedMoment(
  tools: PassTools,
  moment: SharedMoment,
  pass: Pass,
): Promise<{ sent: number; waitMs: number | null }> {
  const { database } = tools;
  const { perSecond, size } = await paceOfPass(tools, moment);
  const which = 'sm.waba_id = :wabaId and sm.send_at = :sendAt and sm.phone_number_id = :phoneNumberId';
  const ids = await takeOpen(database, which, moment, size);
  if (ids.length === 0) {
    await database.transaction((trx) => finishTask(trx, sharedMomentId(moment)));
    return { sent: 0, waitMs: null };
  }
  let sent = 0;
  const onMessage = () => {
    sent += 1;
    pass.onMessage();
  };
  const end = await sendInPass(tools, moment, ids, (queued) => queued, { ...pass, onMessage, perSecond });
  return { sent, waitMs: end === 'waits' ? LOOK_AGAIN_MS : 0 };
}

const LOOK_AGAIN_MS = 1_000;
