import { expect, onTestFinished, test } from 'vitest';
import { addRecipients } from '../../../src/features/messages/broadcasts/broadcast-lines.ts';
import {
  countRecipients,
  listRecipients,
} from '../../../src/features/messages/broadcasts/broadcast-recipients.ts';
import {
  broadcastOf,
  changeBroadcast,
  createBroadcast,
} from '../../../src/features/messages/broadcasts/broadcasts.ts';
import { queueMessage } from '../../../src/features/messages/send/queue-message.ts';
import { cancelScheduled, moveScheduled } from '../../../src/features/messages/send/scheduled-messages.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { openObjectStore } from '../../../src/platform/object-store/object-store.ts';
import { queryValue } from '../../../src/platform/postgres/sql.ts';
import { openTemporalConnection } from '../../../src/platform/temporal/client-connection.ts';
import { copyOfRows } from '../../support/database-copy.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';
import { people, TEMPLATE } from '../messages/broadcasts/broadcast-calls.ts';
import { startSendingBase } from '../messages/send/sending-stack.ts';
import { differences, FIX, LOOK } from './reconcile-stack.ts';

const HOUR_MS = 3_600_000;
const RECIPIENTS = 80;
const PER_SECOND = 4;

const inMs = (ms: number) => new Date(Date.now() + ms);

async function startInstallation() {
  const base = await startSendingBase({ HELIOGRAPH_SEND_MESSAGES_PER_SECOND: String(PER_SECOND) });
  onTestFinished(() => base.close());
  const objectStore = openObjectStore(base.config.objectStore);
  onTestFinished(() => objectStore.close());
  const temporal = openTemporalConnection(base.config);
  onTestFinished(() => temporal.close());
  const startWorker = async () => {
    const worker = startWorkerProcess(base.settings);
    onTestFinished(() => worker.kill());
    await worker.ready();
    return worker;
  };
  return { ...base, reconciled: { ...base, objectStore, temporal } as never, startWorker };
}

type Installation = Awaited<ReturnType<typeof startInstallation>>;

/** Direct Send needs no open window. */
async function schedule({ database, wabaId, number }: Installation, to: string) {
  const message = { phoneNumberId: number, to, type: 'text', category: 'utility', text: { body: 'Hello' } };
  const sender = { wabaId, keyId: null, maxMessagesPerDay: null, recipients: 'any' } as const;
  const times = { sendAt: inMs(HOUR_MS), notAfter: null };
  return await queueMessage(database, sender, message as never, { key: null, times });
}

/** As a move to a time that a request may not give. */
const move = async ({ database, wabaId }: Installation, id: string, sendAt: Date, notAfter?: Date) =>
  await moveScheduled(
    { database, actor: SYSTEM },
    wabaId,
    id,
    { sendAt: sendAt.toISOString(), ...(notAfter && { notAfter: notAfter.toISOString() }) },
    sendAt.getTime() - 60_000,
  );

async function startBroadcast({ database, wabaId, number }: Installation, everybody: object[]) {
  const tools = { database, actor: SYSTEM };
  const given = { name: 'Sale', phoneNumberId: number, template: TEMPLATE };
  const { id } = await createBroadcast(tools, wabaId, given, { requestedBy: 'a test', limits: null });
  await addRecipients(tools, { wabaId, broadcastId: id }, everybody as never);
  await changeBroadcast(tools, { wabaId, broadcastId: id }, 'start', null);
  return id;
}

const stateOf = async ({ database }: Installation, id: string) =>
  await queryValue<string>(
    database,
    `select case when cancelled_at is not null then 'cancelled' when is_open then 'scheduled' else o.state end
         || coalesce(' ' || cast(cast(o.error as json) ->> 'code' as text), '')
       from outbound_messages o join scheduled_messages s using (message_id) where message_id = :id`,
    { id },
  );

test('after a restore to an earlier moment, and late, no message goes out twice, and what is late obeys notAfter', {
  timeout: 300_000,
}, async () => {
  const world = await startInstallation();
  const { database, wabaId } = world;
  const worker = await world.startWorker();
  const everybody = people(RECIPIENTS);
  const to = {
    sent: '12025560001',
    cancelled: '12025560002',
    late: '12025560003',
    over: '12025560004',
    later: '12025560005',
  };
  const [sent, cancelled, late, over, later] = await Promise.all(
    Object.values(to).map((phone) => schedule(world, phone)),
  );
  if (!sent || !cancelled || !late || !over || !later) throw new Error('five are needed');
  const arrived = async () => (await world.sent()).map(({ body }) => String((body as { to: string }).to));
  const broadcastId = await startBroadcast(world, everybody);
  await eventually('some are sent', async () => (await arrived()).length >= 5);
  const putBack = await copyOfRows(database);
  await cancelScheduled({ database, actor: SYSTEM }, wabaId, cancelled);
  await move(world, sent, inMs(500));
  await eventually('more are sent, and the one whose time has come', async () => {
    const phones = await arrived();
    return phones.length >= 20 && phones.includes(to.sent);
  });
  await worker.kill();
  await putBack();
  // Hours are no different: no worker is there at their time.
  const dueAt = inMs(500);
  await move(world, late, dueAt);
  await move(world, over, dueAt, new Date(dueAt.getTime() + 500));
  const isOver = 'select not_after < clock_timestamp() from scheduled_messages where message_id = :over';
  await eventually('its notAfter has passed', () => queryValue<boolean>(database, isOver, { over }));
  expect(await Promise.all([sent, cancelled, late, over, later].map((id) => stateOf(world, id)))).toEqual(
    Array(5).fill('scheduled'),
  );
  const found = await differences(world.reconciled, { ...FIX, rewound: true });
  expect(found).toMatchObject({ send_already_made: { left: 0 }, recipient_already_sent: { left: 0 } });
  await world.startWorker();
  const view = () => broadcastOf({ database }, wabaId, broadcastId);
  await eventually('the broadcast ends', async () => (await view()).state, { is: 'done', withinMs: 60_000 });
  await eventually('the late one is sent', () => stateOf(world, late), { is: 'accepted' });
  await eventually('the other is over', () => stateOf(world, over), { is: 'failed too_late' });
  const phones = await arrived();
  expect(phones.filter((phone, n) => phones.indexOf(phone) < n)).toEqual([]);
  const ofBroadcast = everybody.map(({ to: phone }) => phone);
  expect(phones.filter((phone) => !ofBroadcast.includes(phone)).toSorted()).toEqual([to.sent, to.late]);
  // The kill may have cut single calls off, which upstream may have taken or not.
  const { recipients } = await listRecipients(database, broadcastId, {
    state: 'unknown',
    afterId: null,
    limit: 100,
  });
  const unknown = recipients.map(({ recipient }) => recipient);
  expect(ofBroadcast.filter((phone) => !phones.includes(phone) && !unknown.includes(phone))).toEqual([]);
  expect(await Promise.all([sent, cancelled, later].map((id) => stateOf(world, id)))).toEqual([
    'unknown outcome_unknown',
    'unknown outcome_unknown',
    'scheduled',
  ]);
  const counts = await countRecipients(database, broadcastId);
  expect([counts.accepted + counts.unknown, counts.pending, counts.queued]).toEqual([RECIPIENTS, 0, 0]);
  expect(await differences(world.reconciled, LOOK)).toEqual({});
});

test('after a restore to an earlier moment, none of the many messages for one moment goes out twice', {
  timeout: 300_000,
}, async () => {
  const world = await startInstallation();
  const { database, wabaId, number } = world;
  const sender = { wabaId, keyId: null, maxMessagesPerDay: null, recipients: 'any' } as const;
  const queue = async (sendAt: Date) => {
    const message = { phoneNumberId: number, to: people(1)[0]?.to, type: 'text', category: 'utility' };
    const times = { sendAt, notAfter: null };
    const body = { ...message, text: { body: 'Hello' } };
    return (await queueMessage(database, sender, body as never, { key: null, times })) ?? '';
  };
  const [soon, later] = [inMs(8_000), inMs(HOUR_MS)];
  const many = 40;
  for (let n = 0; n < many; n += 1) await queue(soon);
  const ofLater: string[] = [];
  for (let n = 0; n < many; n += 1) ofLater.push(await queue(later));
  const putBack = await copyOfRows(database);
  const worker = await world.startWorker();
  await eventually('most are sent', async () => (await world.sent()).length > many * 0.7);
  await worker.kill();
  await putBack();
  await differences(world.reconciled, { ...FIX, rewound: true });
  await world.startWorker();
  const open = `select count(*)::int as n from outbound_messages where waba_id = '${wabaId}' and state in ('queued', 'sending')`;
  await eventually('only those of later wait', async () => await queryValue<number>(database, open), {
    is: many,
    withinMs: 120_000,
  });
  const phones = (await world.sent()).map(({ body }) => String((body as { to: string }).to));
  expect(phones.filter((phone, n) => phones.indexOf(phone) < n)).toEqual([]);
  expect(new Set(await Promise.all(ofLater.map((id) => stateOf(world, id))))).toEqual(new Set(['scheduled']));
});
