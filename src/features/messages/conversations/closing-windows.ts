import { findSubscribers, type NewEvent, publishTo } from '../../../engine/deliveries/publish.ts';
import { listWindowWatches, type WindowWatch } from '../../../engine/endpoint/endpoint-settings.ts';
import { lockPublishing } from '../../../engine/queue/publishing-locks.ts';
import { WINDOW_CLOSING } from '../../../platform/event-type.ts';
import type { Logger } from '../../../platform/logger.ts';
import { type Loop, startLoop } from '../../../platform/loop.ts';
import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import { query } from '../../../platform/postgres/sql.ts';
import { LAST_WRITTEN } from './conversations.ts';

/** Two processes that both take themselves for the leader publish a window once. */
const WINDOWS_LOCK = 7_340_007;

/** Messages that are looked at in one transaction. */
const PAGE = 500;

/** How far a walk over the messages of a WABA has come; their times with all digits. */
type Place = { at: string; id: string };

const BEGINNING: Place = { at: '-infinity', id: '0' };

type ClosingWindow = {
  conversationId: string;
  phoneNumberId: string;
  waId: string | null;
  userId: string | null;
  groupId: string | null;
  lastInboundAt: Date | null;
  lastCallAt: Date | null;
  endsAt: Date;
  eventId: string;
};

/**
 * Publishes `window.closing` to the endpoints that ask for it, so many minutes before the customer service window of a conversation ends.
 * It walks over what came 24 hours before that moment: a customer who wrote again since has a window that ends later, and comes up then.
 * Where it is lost (another process leads), the walk begins with the oldest open window: the log of events says which were published.
 * True: there is more to look at now.
 */
export function makeWindowLook(database: Database): () => Promise<boolean> {
  let places = new Map<string, Place>();
  return async () => {
    const watches = await listWindowWatches(database);
    const before = places;
    places = new Map(watches.map((watch) => [keyOf(watch), before.get(keyOf(watch)) ?? BEGINNING]));
    let isMore = false;
    for (const watch of watches) {
      const page = await readPage(database, watch, places.get(keyOf(watch)) ?? BEGINNING);
      if (page.conversationIds.length > 0) {
        await database.transaction((trx) => publishClosing(trx, watch, page.conversationIds));
      }
      if (page.last !== null) places.set(keyOf(watch), page.last);
      isMore ||= page.isFull;
    }
    return isMore;
  };
}

/** One worker sees to it, with PostgreSQL only. */
export function startWindowLoop(tools: {
  database: Database;
  logger: Logger;
  isLeader: () => boolean;
}): Loop {
  return startLoop({ name: 'closing-windows', ...tools, turn: makeWindowLook(tools.database) });
}

function keyOf({ wabaId, minutes }: WindowWatch): string {
  return `${wabaId} ${minutes}`;
}

/** The conversations of the next messages whose windows may close within the minutes. Calls open a window as messages do. */
async function readPage(database: Database, { wabaId, minutes }: WindowWatch, after: Place) {
  const rows = await query<Place & { conversationId: string; isContact: boolean }>(
    database,
    `select m.id, m.created_at::text as at, m.conversation_id as "conversationId",
            m.direction = 'inbound' or m.type = 'call' as "isContact"
       from messages m
      where m.waba_id = :wabaId and m.created_at > now() - interval '24 hours'
        and m.created_at <= now() - interval '24 hours' + :minutes * interval '1 minute'
        and (m.created_at, m.id) > (cast(:at as timestamptz), cast(:id as bigint))
      order by m.created_at, m.id limit ${PAGE}`,
    { wabaId, minutes, ...after },
  );
  const contacts = rows.flatMap(({ isContact, conversationId }) => (isContact ? [conversationId] : []));
  return {
    conversationIds: [...new Set(contacts)],
    last: rows.at(-1) ?? null,
    isFull: rows.length === PAGE,
  };
}

async function publishClosing(
  trx: Transaction,
  watch: WindowWatch,
  conversationIds: readonly string[],
): Promise<void> {
  await query(trx, 'select pg_advisory_xact_lock(:lock::bigint)', { lock: WINDOWS_LOCK });
  await lockPublishing(trx);
  const closing = await findClosing(trx, watch, conversationIds);
  const subscribers = await findSubscribers(trx, [watch.wabaId]);
  const asking = subscribers.filter(({ id }) => watch.endpointIds.includes(id));
  const events = closing.map((window) => eventOf(watch, window));
  await publishTo(trx, asking, events, { occurredAt: new Date(), claimer: null });
}

/** Open windows that end within the minutes, and of which no event was published. A minute more, so that messages that came one after the other have one event. */
async function findClosing(
  trx: Transaction,
  { wabaId, minutes }: WindowWatch,
  conversationIds: readonly string[],
): Promise<ClosingWindow[]> {
  return await query<ClosingWindow>(
    trx,
    `select c.id as "conversationId", c.phone_number_id as "phoneNumberId", u.wa_id as "waId", nullif(u.user_id, '') as "userId",
            c.group_id as "groupId", written.at as "lastInboundAt", c.last_call_at as "lastCallAt", w.ends_at as "endsAt", w.event_id as "eventId"
       from conversations c
      cross join lateral (${LAST_WRITTEN}) as written
      cross join lateral (select greatest(written.at, c.last_call_at) + interval '24 hours' as ends_at) as e
      cross join lateral (
        select e.ends_at, concat('window_', c.id, '_', cast(extract(epoch from e.ends_at) as bigint), '_', cast(:minutes as integer)) as event_id) as w
       left join contacts u on u.id = c.contact_id and u.waba_id = c.waba_id
      where c.waba_id = :wabaId and c.id = any (cast(:conversationIds as bigint[])) and c.merged_into is null
        and w.ends_at > now() and w.ends_at <= now() + (:minutes + 1) * interval '1 minute'
        and not exists (select from events v where v.waba_id = c.waba_id and v.event_id = w.event_id
                           and v.day >= cast(now() at time zone 'utc' as date) - 1)
      order by w.ends_at, c.id`,
    { wabaId, minutes, conversationIds },
  );
}

function eventOf({ wabaId, tenantId }: WindowWatch, window: ClosingWindow): NewEvent {
  const { conversationId, phoneNumberId, eventId } = window;
  return {
    wabaId,
    tenantId,
    phoneNumberId,
    type: WINDOW_CLOSING,
    eventId,
    conversationId,
    messageId: null,
    laneKey: `window/${conversationId}`,
    dataJson: windowClosingData(window),
  };
}

/** JSON text of `data` of a `window.closing` event. */
export function windowClosingData(window: Omit<ClosingWindow, 'eventId' | 'phoneNumberId'>): string {
  const { conversationId, waId, userId, groupId, lastInboundAt, lastCallAt, endsAt } = window;
  return JSON.stringify({
    conversationId,
    customer: groupId === null ? { waId, userId } : null,
    groupId,
    lastInboundAt,
    lastCallAt,
    expiresAt: endsAt,
  });
}
