import { expect, onTestFinished, test } from 'vitest';
import { addRecipients } from '../../../../src/features/messages/broadcasts/broadcast-lines.ts';
import { stepBroadcast } from '../../../../src/features/messages/broadcasts/broadcast-steps.ts';
import { changeBroadcast, createBroadcast } from '../../../../src/features/messages/broadcasts/broadcasts.ts';
import { makeSend, makeSendMemory, type SendRun } from '../../../../src/features/messages/send/make-send.ts';
import type { SendMessageInput } from '../../../../src/features/messages/send/record-send.ts';
import { SYSTEM } from '../../../../src/platform/audit/audit.ts';
import { openSendClient } from '../../../../src/platform/graph/graph-client.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { silentLogger } from '../../../support/silent-logger.ts';
import { testSecretBox } from '../../../support/test-accounts.ts';
import { startSendingBase } from '../send/sending-stack.ts';
import { people, TEMPLATE, WHOLE_PASS } from './broadcast-calls.ts';

const RECIPIENTS = 140;
const PER_SECOND = 100;
/** What a message needs alone, its share of what is done for many, and what a pass needs: 2.3 on a quiet machine; one by one it was more than 30. */
const MOST_STATEMENTS = 10;

/** Notes every statement, with those that begin and end a transaction. */
function counting<Some extends Database>(database: Some, texts: string[]): Some {
  return {
    ...database,
    raw: (text, bindings) => {
      texts.push(text);
      return database.raw(text, bindings);
    },
    transaction: (work) => {
      texts.push('begin', 'commit');
      return database.transaction((trx) => work(counting(trx, texts)));
    },
  };
}

async function startedBroadcast() {
  const base = await startSendingBase();
  onTestFinished(() => base.close());
  const { database } = base;
  const { wabaId, number } = await base.newTenant();
  await execute(
    database,
    'update phone_numbers set messages_per_second = :perSecond where waba_id = :wabaId',
    {
      perSecond: PER_SECOND,
      wabaId,
    },
  );
  const asking = { database, actor: SYSTEM };
  const given = { name: 'Sale', phoneNumberId: number, template: TEMPLATE };
  const { id } = await createBroadcast(asking, wabaId, given, { requestedBy: 'a test', limits: null });
  const everybody = people(RECIPIENTS);
  await addRecipients(asking, { wabaId, broadcastId: id }, everybody as never);
  await changeBroadcast(asking, { wabaId, broadcastId: id }, 'start', null);
  return { ...base, ids: { wabaId, broadcastId: id }, everybody };
}

test('a message of a broadcast takes few statements, because most are for many', async () => {
  const { config, database, ids, everybody, sent } = await startedBroadcast();
  const texts: string[] = [];
  const counted = counting(database, texts);
  const { sending } = config;
  const sender = openSendClient(config);
  onTestFinished(() => sender.close());
  const tools = { database: counted, secretBox: testSecretBox, sender, sending, logger: silentLogger };
  const memory = makeSendMemory();
  const send = (input: SendMessageInput, run: SendRun) =>
    makeSend({ ...tools, objectStore: {} as never }, input, { ...run, ...memory });
  // On a slow machine a pass ends before all have their turn.
  for (let left = RECIPIENTS; left > 0; left = RECIPIENTS - (await sent()).length)
    await stepBroadcast({ database: counted, sending, send }, ids, WHOLE_PASS);
  expect((await sent()).map(({ body }) => (body as { to: string }).to).toSorted()).toEqual(
    everybody.map(({ to }) => to).toSorted(),
  );
  const states = `select distinct o.state, sm.is_open as open, v.last_later_id = o.message_id as noted
    from outbound_messages o join scheduled_messages sm using (message_id) join messages m on m.id = o.message_id
    join conversations v on v.id = m.conversation_id where o.waba_id = :wabaId`;
  expect(await query(database, states, ids)).toEqual([{ state: 'accepted', open: false, noted: true }]);
  expect(await query(database, `select 1 from workflow_tasks where workflow_id like 'send/%'`)).toEqual([]);
  const most = Map.groupBy(texts, (text) => text.replaceAll(/\s+/g, ' ').slice(0, 80));
  const ranked = [...most]
    .map(([text, all]) => [all.length, text])
    .toSorted((a, b) => Number(b[0]) - Number(a[0]));
  if (process.env.RANK !== undefined) console.log(ranked, texts.length / RECIPIENTS);
  expect(texts.length / RECIPIENTS, JSON.stringify(ranked)).toBeLessThan(MOST_STATEMENTS);
});
