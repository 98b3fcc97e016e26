import type { Knex } from 'knex';
import { ENQUEUE as FORMER_ENQUEUE } from './0006-delivery-functions.ts';

/**
 * What lets intake take a backlog in by turns (docs/decisions/0037): whose a body is, how far it was taken in, and
 * queueing at a cost that grows with the number of deliveries only.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    -- waba_id: of all entries of the body; 0 when it cannot be read or does not say. partly: how far it is
    -- taken in and what was set aside until there, while the rest still waits.
    alter table inbox add column waba_id text not null default '0', add column partly jsonb;
    create index inbox_new_of_waba on inbox (waba_id, id) where state = 'new';
    drop index inbox_not_done;
    create index inbox_not_done on inbox (state, id) where state in ('set_aside', 'failed');
    drop function enqueue_deliveries;
    ${ENQUEUE}
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    drop function enqueue_deliveries;
    ${FORMER_ENQUEUE}
    drop index inbox_not_done, inbox_new_of_waba;
    create index inbox_not_done on inbox (id) where state in ('set_aside', 'failed');
    alter table inbox drop column waba_id, drop column partly;
  `);
}

/**
 * As before (0006), but what became a head is known by its row instead of by a search in an array per row. A row that
 * met the present head of its lane is an update of that head, so its xmax is this transaction's lock.
 * Nested loops are off because the join is over as many rows as there are deliveries, whatever the planner expects.
 */
const ENQUEUE = `
  create function enqueue_deliveries(
    endpoint_ids bigint[], lanes text[], released boolean[], replays boolean[], delivery_days date[],
    delivery_ids uuid[], event_days date[], event_uuids uuid[],
    claimed boolean[], claim_token uuid, lease_ms double precision
  ) returns uuid[] language plpgsql set enable_hashjoin = on set enable_nestloop = off as $$
  #variable_conflict use_column
  declare
    heads uuid[];
  begin
    with given as (
      select * from unnest(endpoint_ids, lanes, released, replays, delivery_days, delivery_ids, event_days,
                           event_uuids, claimed) with ordinality
        as g (endpoint_id, lane, released, replay, delivery_day, delivery_id, event_day, event_uuid, claimed, n)
    ), firsts as (
      select distinct on (endpoint_id, lane) * from given order by endpoint_id, lane, n
    ), inserted as (
      insert into delivery_queue (endpoint_id, lane, state, released, replay, delivery_day, delivery_id, event_day,
                                  event_uuid, by_session, token, lease_until)
      select endpoint_id, lane, case when claimed then 'claimed' when f.released then 'due' else 'held' end,
             f.released, replay, delivery_day, delivery_id, event_day, event_uuid, claimed,
             case when claimed then claim_token end,
             case when claimed then clock_timestamp() + lease_ms * interval '1 millisecond' end
        from firsts f order by endpoint_id, lane
      on conflict (endpoint_id, lane) where state <> 'queued' do update set lane = excluded.lane
      returning delivery_id, xmax = 0 as is_new
    )
    select array_agg(i.delivery_id) into heads from inserted i where i.is_new;
    if coalesce(cardinality(heads), 0) < cardinality(delivery_ids) then
      insert into delivery_queue (endpoint_id, lane, state, released, replay, delivery_day, delivery_id, event_day,
                                  event_uuid)
      select g.endpoint_id, g.lane, 'queued', g.released, g.replay, g.delivery_day, g.delivery_id, g.event_day,
             g.event_uuid
        from unnest(endpoint_ids, lanes, released, replays, delivery_days, delivery_ids, event_days, event_uuids)
               with ordinality
          as g (endpoint_id, lane, released, replay, delivery_day, delivery_id, event_day, event_uuid, n)
        left join unnest(heads) as h (delivery_id) on h.delivery_id = g.delivery_id
       where h.delivery_id is null
       order by g.n;
    end if;
    return heads;
  end $$;
`;
