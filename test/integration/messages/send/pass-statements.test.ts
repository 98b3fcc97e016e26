import { expect, onTestFinished, test } from 'vitest';
import { addRecipients } from '../../../../src/features/messages/broadcasts/broadcast-lines.ts';
import { stepBroadcast } from '../../../../src/features/messages/broadcasts/broadcast-steps.ts';
import { changeBroadcast, createBroadcast } from '../../../../src/features/messages/broadcasts/broadcasts.ts';
import { makeSend, makeSendMemory, type SendRun } from '../../../../src/features/messages/send/make-send.ts';
import { queueMessage } from '../../../../src/features/messages/send/queue-message.ts';
import type { SendMessageInput } from '../../../../src/features/messages/send/record-send.ts';
import { type SharedMoment, stepSharedMoment } from '../../../../src/features/messages/send/shared-moment.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { openSendClient } from '../../../../src/platform/graph/graph-client.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { notingStatements } from '../../../support/noted-statements.ts';
import { silentLogger } from '../../../support/silent-logger.ts';
import { testSecretBox } from '../../../support/test-accounts.ts';
import { people, TEMPLATE, WHOLE_PASS } from '../broadcasts/broadcast-calls.ts';
import { startSendingBase, textTo } from './sending-stack.ts';

const MANY = 140;
/** Of a moment: these have a workflow each. */
const ALONE = 20;
const PER_SECOND = 100;
/** Of a message, its share of what is done for many at once: 0.6 of a broadcast, and one of these done for each is one more. */
const MOST_SHARED = 1;
/** Those that are begun within a tenth of a second are recorded together: 21 times of 140 messages, fewer together on a slow machine. */
const MOST_RECORDINGS = MANY / 2;
const TRANSACTION = /^(begin|commit)$/;
const RECORDED = /^delete from workflow_tasks/;
/** What each message needs alone, and what recordings consist of. */
const COUNTED_ELSEWHERE =
  /^with ready as|^update conversations c set last_message_at|^with given as \( select \*, row_number/;

/** A tenant, and what sends its messages in passes, with every statement of it in `texts`. */
async function startPasses() {
  const base = await startSendingBase();
  onTestFinished(() => base.close());
  const { config, database } = base;
  const { wabaId, number } = await base.newTenant();
  const pace = 'update phone_numbers set messages_per_second = :perSecond where waba_id = :wabaId';
  await execute(database, pace, { perSecond: PER_SECOND, wabaId });
  const texts: string[] = [];
  const counted = notingStatements<Database>(database, texts);
  const { sending } = config;
  const sender = openSendClient(config);
  onTestFinished(() => sender.close());
  const tools = { database: counted, secretBox: testSecretBox, sender, sending, logger: silentLogger };
  const memory = makeSendMemory();
  const send = (input: SendMessageInput, run: SendRun) =>
    makeSend({ ...tools, objectStore: {} as never }, input, { ...run, ...memory });
  return { ...base, wabaId, number, texts, passTools: { database: counted, sending, send } };
}

type Passes = Awaited<ReturnType<typeof startPasses>>;

/** All that a pass has sent took few statements, and nothing is left to be done. */
async function expectFewStatements({ database, wabaId, texts }: Passes): Promise<void> {
  const states = `select distinct o.state, sm.is_open as open, v.last_later_id = o.message_id as noted
    from outbound_messages o join scheduled_messages sm using (message_id) join messages m on m.id = o.message_id
    join conversations v on v.id = m.conversation_id where o.waba_id = :wabaId and o.state <> 'queued'`;
  expect(await query(database, states, { wabaId })).toEqual([
    { state: 'accepted', open: false, noted: true },
  ]);
  const tasks = `select 1 from workflow_tasks where workflow_id like 'send/%' and starts_at is null`;
  expect(await query(database, tasks)).toEqual([]);
  const all = texts
    .map((text) => text.replaceAll(/\s+/g, ' ').trim())
    .filter((text) => !TRANSACTION.test(text));
  const begun = all.filter((text) => text.startsWith('with ready as'));
  const recorded = all.filter((text) => RECORDED.test(text));
  const shared = all.filter((text) => !COUNTED_ELSEWHERE.test(text) && !RECORDED.test(text));
  const counts = [...Map.groupBy(all, (text) => text.slice(0, 80))];
  const ranked = counts.map(([text, { length }]) => `${length} ${text}`).join('\n');
  expect(begun.length, ranked).toBe(MANY);
  expect(recorded.length, ranked).toBeLessThan(MOST_RECORDINGS);
  expect(shared.length / MANY, ranked).toBeLessThan(MOST_SHARED);
}

test('a message of a broadcast takes few statements, because most are for many', async () => {
  const passes = await startPasses();
  const { database, wabaId, number, sent, passTools, texts } = passes;
  const asking = { database, actor: SYSTEM };
  const given = { name: 'Sale', phoneNumberId: number, template: TEMPLATE };
  const { id } = await createBroadcast(asking, wabaId, given, { requestedBy: 'a test', limits: null });
  const ids = { wabaId, broadcastId: id };
  const everybody = people(MANY);
  await addRecipients(asking, ids, everybody as never);
  await changeBroadcast(asking, ids, 'start', null);
  texts.length = 0;
  // On a slow machine a pass ends before all have their turn.
  while ((await sent()).length < MANY) await stepBroadcast(passTools, ids, WHOLE_PASS);
  expect((await sent()).map(({ body }) => (body as { to: string }).to).toSorted()).toEqual(
    everybody.map(({ to }) => to).toSorted(),
  );
  await expectFewStatements(passes);
});

/** Messages for one moment, which has come; the first of them have a workflow each. */
async function scheduleForNow({ database, wabaId, number }: Passes, many: number): Promise<SharedMoment> {
  const sender = { wabaId, keyId: null, maxMessagesPerDay: null, recipients: 'any' } as const;
  const sendAt = new Date();
  const schedule = async () => {
    // Direct Send needs no open window.
    const message = { phoneNumberId: number, ...textTo(), category: 'utility' };
    const times = { sendAt, notAfter: null };
    await queueMessage(database, sender, message as never, { key: null, times });
  };
  for (let n = 0; n < ALONE; n += 1) await schedule();
  for (let n = 0; n < many; n += 20) await Promise.all(Array.from({ length: 20 }, schedule));
  return { wabaId, phoneNumberId: number, sendAt: sendAt.toISOString() };
}

test('one of many for a moment takes few statements too', async () => {
  const passes = await startPasses();
  const moment = await scheduleForNow(passes, MANY);
  passes.texts.length = 0;
  while ((await passes.sent()).length < MANY) await stepSharedMoment(passes.passTools, moment, WHOLE_PASS);
  await expectFewStatements(passes);
});

test('two passes that take the same messages send each once, and leave none to its workflow', async () => {
  const passes = await startPasses();
  const moment = await scheduleForNow(passes, 40);
  while ((await passes.sent()).length < 40)
    await Promise.all([1, 2].map(() => stepSharedMoment(passes.passTools, moment, WHOLE_PASS)));
  const recipients = (await passes.sent()).map(({ body }) => (body as { to: string }).to);
  expect(new Set(recipients).size).toBe(recipients.length);
  // Returned tasks are given to Temporal at once.
  expect(passes.texts.filter((text) => /update workflow_tasks set starts =/.test(text))).toEqual([]);
});

test('a pass that was delayed does not fill the pace of its number, which single messages need', async () => {
  const passes = await startPasses();
  const moment = await scheduleForNow(passes, 40);
  const begunAtMs: number[] = [];
  const send = async () => {
    begunAtMs.push(performance.now());
    return { outcome: 'accepted', summary: 'nothing is sent' } as const;
  };
  const onMessage = () => {
    const untilMs = performance.now() + (begunAtMs.length === 5 ? 200 : 0);
    while (performance.now() < untilMs);
  };
  await stepSharedMoment({ ...passes.passTools, send }, moment, { ...WHOLE_PASS, onMessage });
  expect(begunAtMs.length).toBeGreaterThan(14);
  // 14 were late. Half, as the first of these may itself have been noted late.
  const tookMs = (begunAtMs[14] ?? 0) - (begunAtMs[5] ?? 0);
  expect(tookMs).toBeGreaterThan((9 * 1_000) / PER_SECOND / 2);
});
