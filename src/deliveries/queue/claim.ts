import type { Database } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';
import { type DuePlace, type DueShare, pickDue, pickParameters } from './due-pick.ts';

/** A delivery under lease, with the event that it carries. */
export type ClaimedDelivery = {
  deliveryId: string;
  deliveryDay: string;
  endpointId: string;
  endpointVersion: number;
  eventDay: string;
  eventUuid: string;
  /** Attempts already recorded; `probes` of them used up no retry. */
  attempts: number;
  probes: number;
  replay: boolean;
  eventType: string;
  eventId: string;
  sequence: string;
  body: Buffer;
};

/** A claimed delivery whose event no longer exists: nothing could ever be sent. */
export type Orphan = { deliveryId: string; body: null };

/** The place in the queue that a claimed delivery had. */
export type TakenPlace = DuePlace & { endpointId: string };

/** SQL that shows the rows of the expression `claimed` as claimed deliveries, in queue order. */
const SHOW_CLAIMED = `
  select c.delivery_id as "deliveryId", c.delivery_day as "deliveryDay", c.endpoint_id as "endpointId",
         c.position, w.version as "endpointVersion", c.event_day as "eventDay", c.event_uuid as "eventUuid", c.attempts,
         c.probes, c.replay, ev.event_type as "eventType", ev.event_id as "eventId", ev.sequence, ev.body
    from claimed c
    left join events ev on ev.day = c.event_day and ev.id = c.event_uuid
    join webhook_endpoints w on w.id = c.endpoint_id
   order by c.position`;

/**
 * Claims due deliveries for `leaseMs`, as many as `shares` and `limit` allow, from endpoints that are open. Returns them in queue order, and what place each had there.
 */
export async function claimDue(
  database: Database,
  claim: { shares: readonly DueShare[]; limit: number; token: string; leaseMs: number },
): Promise<{ deliveries: ClaimedDelivery[]; orphans: Orphan[]; taken: TakenPlace[] }> {
  const rows = await query<(ClaimedDelivery | Orphan) & TakenPlace>(
    database,
    `with ${pickDue()}, claimed as (
       update delivery_queue
          set state = 'claimed', by_workflow = false, token = cast(:token as uuid),
              lease_until = clock_timestamp() + :leaseMs * interval '1 millisecond'
        where ctid = any (array(select row_id from picked)) and state = 'due'
       returning *
     )
     ${SHOW_CLAIMED}`,
    {
      ...pickParameters(claim.shares, claim.limit),
      token: claim.token,
      leaseMs: claim.leaseMs,
    },
  );
  return { ...withEvents(rows), taken: rows };
}

function withEvents(rows: readonly (ClaimedDelivery | Orphan)[]) {
  return {
    deliveries: rows.filter((row) => row.body !== null),
    orphans: rows.filter((row) => row.body === null),
  };
}

/**
 * Claims the oldest due delivery of each endpoint that is probed and whose probe is due: it is the one probe that the
 * endpoint gets within `leaseMs`. A delivery that a workflow attempts, or is about to, will be the probe instead.
 */
export async function claimProbes(
  database: Database,
  claim: { limit: number; token: string; leaseMs: number },
): Promise<{ deliveries: ClaimedDelivery[]; orphans: Orphan[] }> {
  const rows = await query<ClaimedDelivery | Orphan>(
    database,
    `with picked as (
       select w.id as endpoint_id, due.row_id
         from webhook_endpoints w
        cross join lateral (
          select ctid as row_id from delivery_queue
           where endpoint_id = w.id and state = 'due' order by replay, position limit 1 for update skip locked
        ) as due
        where w.mode = 'probing' and w.next_probe_at <= now()
          and not exists (select 1 from delivery_queue b
                           where b.endpoint_id = w.id and b.state in ('claimed', 'retrying') and b.by_workflow
                             and (b.state = 'claimed' or b.next_attempt_at < clock_timestamp() + interval '1 second'))
        limit cast(:limit as integer)
     ), granted as (
       update webhook_endpoints w set next_probe_at = clock_timestamp() + :leaseMs * interval '1 millisecond'
         from picked p
        where w.id = p.endpoint_id and w.mode = 'probing' and w.next_probe_at <= clock_timestamp()
       returning p.row_id
     ), claimed as (
       update delivery_queue
          set state = 'claimed', by_workflow = false, token = cast(:token as uuid),
              lease_until = clock_timestamp() + :leaseMs * interval '1 millisecond'
        where ctid = any (array(select row_id from granted)) and state = 'due'
       returning *
     )
     ${SHOW_CLAIMED}`,
    claim,
  );
  return withEvents(rows);
}

/** Gives claims back untouched, to be claimed again at once. */
export async function releaseClaims(
  database: Database,
  token: string,
  deliveryIds: readonly string[],
): Promise<void> {
  await execute(
    database,
    `update delivery_queue set state = 'due', token = null, lease_until = null
      where delivery_id = any (?::uuid[]) and token = ? and state = 'claimed'`,
    [deliveryIds, token],
  );
}

/**
 * Gives back what the loops of dead processes held: their leases have ended, `withinSeconds` ago at most. Workflows look
 * after their own.
 */
export async function releaseExpired(
  database: Database,
  options: { withinSeconds: number; limit: number },
): Promise<number> {
  return await execute(
    database,
    `update delivery_queue set state = 'due', token = null, lease_until = null
      where ctid = any (array(select ctid from delivery_queue
                               where state = 'claimed' and lease_until < now() and not by_workflow
                                 and lease_until > now() - cast(:withinSeconds as float8) * interval '1 second'
                               order by lease_until limit cast(:limit as integer) for update skip locked))`,
    options,
  );
}
