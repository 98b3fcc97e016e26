import { expect, test } from 'vitest';
import { queryValue } from '../../../../src/platform/postgres/sql.ts';
import { SENT_UP_TO } from '../../../../src/platform/temporal/workflow-options.ts';
import { listWorkflows } from '../../../../src/platform/temporal/workflow-states.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { sendingStackOfFile } from '../send/sending-stack.ts';
import { broadcastCalls, people } from './broadcast-calls.ts';

const stack = sendingStackOfFile();

const runsOf = async (type: string) => {
  const query = `WorkflowType = "${type}" AND HeliographWabaId = "${stack.wabaId}"`;
  const found = [];
  for await (const runs of listWorkflows(stack.client, query, 100)) found.push(...runs);
  return found;
};

test('a broadcast sends its messages itself: only one that upstream wants again has a workflow, behind others', async () => {
  const { started, get, setPace } = broadcastCalls(stack);
  await setPace(1_000);
  await stack.addFault({ match: 'send', kind: 'status', status: 429, code: 130429, times: 1 });
  const recipients = 130;
  const id = await started(people(recipients));
  await eventually('it is done', async () => (await get(id)).state, { is: 'done' });
  expect((await get(id)).counts).toMatchObject({ accepted: recipients, failed: 0 });
  await eventually('the run is listed', async () => (await runsOf('sendMessage')).length, { is: 1 });
  const [run] = await runsOf('sendMessage');
  expect(run?.memo).toMatchObject({ broadcastId: id });
  const { raw } = await stack.client.workflow.getHandle(run?.workflowId ?? '').describe();
  expect(raw.workflowExecutionInfo?.priority?.priorityKey).toBe(4);
  expect(await stack.sent()).toHaveLength(recipients);
  // Whatever a later restore forgets, the memo names it.
  const last = `select max(id) from broadcast_recipients where broadcast_id = :id`;
  const upTo = await queryValue<string>(stack.database, last, { id });
  const memo = async () => (await runsOf('sendBroadcast'))[0]?.memo[SENT_UP_TO];
  await eventually('the end of the last part is listed', memo, { is: upTo });
});
