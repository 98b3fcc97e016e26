import { expect } from 'vitest';
import { addRecipients } from '../../../../src/features/messages/broadcasts/broadcast-lines.ts';
import {
  broadcastOf,
  changeBroadcast,
  createBroadcast,
} from '../../../../src/features/messages/broadcasts/broadcasts.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../../support/worker-process.ts';
import { startSendingBase } from '../send/sending-stack.ts';
import { people, TEMPLATE } from './broadcast-calls.ts';

const KILLS = 3;

/**
 * Kills workers while a broadcast runs, then revokes the access token until it pauses itself: each recipient gets one message, and the
 * report says so.
 */
export async function expectOneMessageEach(recipients: number, messagesPerSecond: number): Promise<void> {
  const base = await startSendingBase({
    HELIOGRAPH_SEND_TIMEOUT_MS: '2000',
    HELIOGRAPH_SEND_MESSAGES_PER_SECOND: String(messagesPerSecond),
  });
  const { database, wabaId } = base;
  const tools = { database, actor: SYSTEM };
  const everybody = people(recipients);
  const given = { name: 'Sale', phoneNumberId: base.number, template: TEMPLATE };
  const { id } = await createBroadcast(tools, wabaId, given, { requestedBy: 'a test', limits: null });
  const ids = { wabaId, broadcastId: id };
  for (let at = 0; at < everybody.length; at += 1_000) {
    await addRecipients(tools, ids, everybody.slice(at, at + 1_000));
  }
  let worker = startWorkerProcess(base.settings);
  try {
    await worker.ready();
    await changeBroadcast(tools, ids, 'start', null);
    const sentNow = async () => (await base.sent()).length;
    for (let kill = 1; kill <= KILLS; kill += 1) {
      const wanted = Math.floor((recipients / (KILLS + 2)) * kill);
      await eventually(`${wanted} are sent`, async () => (await sentNow()) >= wanted);
      await worker.kill();
      // While nobody sends: a worker that is ready could be done before the fault is there.
      if (kill === KILLS) await base.addFault({ match: 'send', kind: 'status', status: 401, code: 190 });
      worker = startWorkerProcess(base.settings);
      await worker.ready();
    }
    const view = () => broadcastOf(tools, wabaId, id);
    await eventually('it pauses itself', async () => (await view()).state, { is: 'paused' });
    expect((await view()).pausedBecause).toMatch(/access token/);
    await base.clearFaults();
    await changeBroadcast(tools, ids, 'resume', null);
    await eventually('it is done', async () => (await view()).state, { is: 'done', withinMs: 600_000 });
    await eventually('every message has an outcome', async () => (await view()).counts.queued, {
      is: 0,
      withinMs: 300_000,
    });
    const { counts } = await view();
    // A call that was cut off by a kill is never made again: upstream may have it or not.
    expect(counts.accepted + counts.unknown).toBe(recipients);
    expect(counts).toMatchObject({ failed: 0, pending: 0, suppressed: 0, cancelled: 0, erased: 0 });
    const sent = (await base.sent()).map(({ body }) => String((body as { to: string }).to));
    expect(new Set(sent).size).toBe(sent.length);
    expect(sent.length).toBeGreaterThanOrEqual(counts.accepted);
    expect(sent.length).toBeLessThanOrEqual(recipients);
    const accepted = await query<{ recipient: string }>(
      database,
      `select r.recipient from broadcast_recipients r join outbound_messages o on o.message_id = r.message_id
        where r.broadcast_id = :id and o.state = 'accepted'`,
      { id },
    );
    expect(accepted.filter(({ recipient }) => !sent.includes(recipient))).toEqual([]);
    const messages = await query<{ n: number }>(
      database,
      `select count(*)::int as n from outbound_messages where waba_id = :wabaId`,
      { wabaId },
    );
    expect(messages).toEqual([{ n: recipients }]);
    // At three in the morning workers look at all numbers.
    const tasks = `select workflow_id from workflow_tasks where waba_id = :wabaId and workflow_type <> 'refreshNumbers'`;
    await eventually('no task is left', async () => await query(database, tasks, { wabaId }), { is: [] });
  } finally {
    await worker.kill();
    await base.close();
  }
}
