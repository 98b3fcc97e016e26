import { MESSAGE_BATCH } from '../../../platform/event-type.ts';
import { columnsOf } from '../../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import { execute, query } from '../../../platform/postgres/sql.ts';
import { publicBatchId } from '../../../platform/public-ids.ts';
import {
  type BatchMember,
  judgeBuffer,
  type LaneRow,
  lockBufferedHeads,
  readLanes,
  releaseBuffered,
  waitOn,
} from '../../queue/buffers.ts';
import { BATCH_END, batchStart } from '../envelope.ts';

/**
 * Lets buffered messages go whose conversation has been quiet for long enough, or that wait no longer for another reason: alone as they
 * are, or several together as one event, whose bytes are stored before its first attempt. Returns how many heads it looked at, at most `limit`, and how
 * many of them are due now.
 */
export async function releaseBuffers(
  database: Database,
  limit: number,
): Promise<{ looked: number; released: number }> {
  return await database.transaction(async (trx) => {
    const heads = await lockBufferedHeads(trx, limit);
    if (heads.length === 0) return { looked: 0, released: 0 };
    // A plan of when a day was empty would read all of it for each event.
    await execute(trx, `select set_config('enable_seqscan', 'off', true)`);
    const rows = await readLanes(
      trx,
      heads.map(({ position }) => position),
    );
    const bytes = await sizesOf(
      trx,
      rows.filter(({ released }) => !released),
    );
    const lanes = Map.groupBy(rows, ({ headId }) => headId);
    const judged = heads.map((head) => {
      const lane = lanes.get(head.deliveryId) ?? [];
      return { ...head, lane, verdict: judgeBuffer(lane, bytes, head) };
    });
    const going = judged.flatMap(({ lane, verdict: { kind, ...verdict } }) =>
      'count' in verdict ? [{ kind, rows: lane.slice(0, verdict.count) }] : [],
    );
    const waits = judged.flatMap(({ deliveryId, verdict }) =>
      verdict.kind === 'wait' ? [{ deliveryId, lookMs: verdict.lookMs }] : [],
    );
    await waitOn(trx, waits);
    const members = going.flatMap(({ kind, rows }) =>
      kind === 'go' && rows.length > 1 ? membersOf(rows) : [],
    );
    if (members.length > 0) await storeBatches(trx, members);
    const released = going.flatMap(({ kind, rows }) => (kind === 'go' ? rows.slice(0, 1) : rows));
    if (released.length > 0)
      await releaseBuffered(
        trx,
        released.map(({ deliveryId }) => deliveryId),
        members,
      );
    return { looked: heads.length, released: going.length };
  });
}

/** Of the bodies of these events; absent: not made yet. */
async function sizesOf(
  trx: Transaction,
  rows: readonly Pick<LaneRow, 'eventDay' | 'eventUuid'>[],
): Promise<Map<string, number>> {
  const sizes = await query<{ id: string; bytes: number }>(
    trx,
    `select id, octet_length(body) as bytes from events
      where day = any (cast(:days as date[])) and id = any (cast(:ids as uuid[])) and body is not null`,
    { days: daysOf(rows), ids: rows.map(({ eventUuid }) => eventUuid) },
  );
  return new Map(sizes.map(({ id, bytes }) => [id, bytes]));
}

function daysOf(rows: readonly Pick<LaneRow, 'eventDay'>[]): string[] {
  return [...new Set(rows.map(({ eventDay }) => eventDay))];
}

function membersOf(together: readonly LaneRow[]): BatchMember[] {
  const headDay = together[0]?.deliveryDay ?? '';
  return together.map((row, index) => ({ ...row, headDay, place: index + 1 }));
}

/** The event of a batch has the id of its first delivery, under which all find it. */
async function storeBatches(trx: Transaction, members: readonly BatchMember[]): Promise<void> {
  const counts = Map.groupBy(members, ({ headId }) => headId);
  const heads = members.filter(({ place }) => place === 1);
  await execute(
    trx,
    `insert into events (day, id, waba_id, tenant_id, phone_number_id, event_type, event_id, lane, sequence, conversation_id,
                         body, occurred_at)
     select b.day, b.id, e.waba_id, e.tenant_id, e.phone_number_id, '${MESSAGE_BATCH}', b.name, b.name, 1, e.conversation_id,
            convert_to(b.start, 'UTF8') || j.bodies || convert_to('${BATCH_END}', 'UTF8'), clock_timestamp()
       from unnest(:headDays::date[], :headIds::uuid[], :names::text[], :starts::text[], :firsts::uuid[])
              as b (day, id, name, start, first_event)
       join events e on e.id = b.first_event and e.id = any (:firsts::uuid[]) and e.day = any (cast(:days as date[]))
       join (select m.head_id, string_agg(e.body, ',' order by m.place) as bodies
               from unnest(:headId::uuid[], :eventUuid::uuid[], :place::integer[]) as m (head_id, event_id, place)
               join events e on e.id = m.event_id and e.id = any (:eventUuid::uuid[]) and e.day = any (cast(:days as date[]))
              group by m.head_id) as j on j.head_id = b.id`,
    {
      ...columnsOf(members, 'headId', 'eventUuid', 'place'),
      days: daysOf(members),
      headDays: heads.map(({ headDay }) => headDay),
      headIds: heads.map(({ headId }) => headId),
      names: heads.map(({ headId }) => publicBatchId(headId)),
      starts: heads.map(({ headId }) => batchStart(publicBatchId(headId), counts.get(headId)?.length ?? 0)),
      firsts: heads.map(({ eventUuid }) => eventUuid),
    },
  );
}
