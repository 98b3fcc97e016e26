import type { Database } from '../../database/database.ts';
import { execute, query } from '../../database/sql.ts';
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

/**
 * Claims due deliveries for `leaseMs`, as many as `shares` and `limit` allow, from endpoints that are open; probes are
 * left to workflows. Returns them in queue order, and what place each had there.
 */
export async function claimDue(
  database: Database,
  claim: { shares: readonly DueShare[]; limit: number; token: string; leaseMs: number },
): Promise<{ deliveries: ClaimedDelivery[]; orphans: Orphan[]; taken: TakenPlace[] }> {
  const rows = await query<(ClaimedDelivery | Orphan) & TakenPlace>(
    database,
    `with ${pickDue()}, claimed as (
       update delivery_queue
          set state = 'claimed', by_session = true, token = cast(:token as uuid),
              lease_until = clock_timestamp() + :leaseMs * interval '1 millisecond'
        where ctid = any (array(select row_id from picked)) and state = 'due'
       returning *
     )
     select c.delivery_id as "deliveryId", c.delivery_day as "deliveryDay", c.endpoint_id as "endpointId",
            c.position, w.version as "endpointVersion", c.event_day as "eventDay", c.event_uuid as "eventUuid", c.attempts,
            c.probes, c.replay, ev.event_type as "eventType", ev.event_id as "eventId", ev.sequence, ev.body
       from claimed c
       left join events ev on ev.day = c.event_day and ev.id = c.event_uuid
       join webhook_endpoints w on w.id = c.endpoint_id
      order by c.position`,
    {
      ...pickParameters(claim.shares, claim.limit),
      token: claim.token,
      leaseMs: claim.leaseMs,
    },
  );
  return {
    deliveries: rows.filter((row) => row.body !== null),
    orphans: rows.filter((row) => row.body === null),
    taken: rows,
  };
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
 * Gives back what sessions of dead processes held: their leases have ended, `withinSeconds` ago at most. Workflows look
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
                               where state = 'claimed' and lease_until < now() and by_session
                                 and lease_until > now() - cast(:withinSeconds as float8) * interval '1 second'
                               order by lease_until limit cast(:limit as integer) for update skip locked))`,
    options,
  );
}
