import type { Database } from './database.ts';
import { execute, query } from './sql.ts';

/** Sends an endpoint's deliveries, waiting ones included, to another URL. False: the WABA has no such endpoint. */
export async function setEndpointUrl(
  database: Database,
  wabaId: string,
  change: { id: string; url: string },
): Promise<boolean> {
  const changed = await execute(
    database,
    `update webhook_endpoints set url = :url, version = version + 1, updated_at = now()
      where waba_id = :wabaId and id = :id`,
    { wabaId, ...change },
  );
  return changed === 1;
}

/** The sealed signing secret of an endpoint; null when the WABA has no such endpoint. */
export async function findEndpointSecret(
  database: Database,
  wabaId: string,
  endpointId: string,
): Promise<string | null> {
  const [row] = await query<{ secretSealed: string }>(
    database,
    'select secret_sealed as "secretSealed" from webhook_endpoints where waba_id = ? and id = ?',
    [wabaId, endpointId],
  );
  return row?.secretSealed ?? null;
}
