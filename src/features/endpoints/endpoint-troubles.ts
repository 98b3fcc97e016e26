import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';

export type EndpointTrouble = {
  id: string;
  wabaId: string;
  tenantId: string;
  url: string;
  description: string;
  since: Date;
  reason: string | null;
};

/** Those that fail, or those that were disabled for it; without those that a user switched off. */
export async function listEndpointTroubles(
  database: Database,
  isDisabled: boolean,
  limit: number,
): Promise<EndpointTrouble[]> {
  return await query<EndpointTrouble>(
    database,
    `select e.id, e.waba_id as "wabaId", w.tenant_id as "tenantId", e.url, e.description, h.mode_reason as reason,
            coalesce(h.failing_since, h.mode_changed_at) as since
       from webhook_endpoints e join endpoint_health h on h.endpoint_id = e.id join wabas w on w.waba_id = e.waba_id
      where h.failing_notified and h.mode <> 'paused' and (h.mode = 'disabled') = :isDisabled and w.removed_at is null
      order by e.id limit :limit`,
    { isDisabled, limit },
  );
}

export type FinalFailures = {
  id: string;
  wabaId: string;
  tenantId: string;
  failed: number;
  lastHour: Date;
};

/** In the last 24 hours. */
export async function listFinalFailures(database: Database, limit: number): Promise<FinalFailures[]> {
  return await query<FinalFailures>(
    database,
    `select e.id, e.waba_id as "wabaId", w.tenant_id as "tenantId", sum(f.failed)::integer as failed,
            max(f.hour) as "lastHour"
       from endpoint_failures f
       join webhook_endpoints e on e.id = f.endpoint_id
       join wabas w on w.waba_id = e.waba_id
      where f.hour > now() - interval '24 hours' and w.removed_at is null
      group by e.id, w.tenant_id order by e.id limit :limit`,
    { limit },
  );
}
