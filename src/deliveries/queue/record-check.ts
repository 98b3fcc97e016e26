import { randomUUID } from 'node:crypto';
import type { Database } from '../../platform/postgres/database.ts';
import { execute } from '../../platform/postgres/sql.ts';
import { undone } from '../../platform/postgres/undone.ts';
import { settleDeliveries } from './settle.ts';

/** Writes what recording an attempt writes and undoes it. Rejects with the reason when nothing can be recorded. */
export async function checkRecording(database: Database): Promise<void> {
  await undone(database, async (trx) => {
    const id = randomUUID();
    await settleDeliveries(trx, [], { worker: '', claim: null });
    await execute(
      trx,
      `insert into deliveries (day, id, waba_id, endpoint_id, event_day, event_uuid)
       values (current_date, cast(:id as uuid), '', 0, current_date, cast(:id as uuid))`,
      { id },
    );
    await execute(
      trx,
      `update deliveries set state = 'delivered', attempts = 1, finished_at = clock_timestamp()
        where day = current_date and id = cast(:id as uuid)`,
      { id },
    );
    await execute(
      trx,
      `insert into attempts (delivery_id, attempt, waba_id, endpoint_id, started_at, duration_ms, timings, url,
                             request_headers, worker)
       values (cast(:id as uuid), 1, '', 0, now(), 0, '{}', '', '{}', '')`,
      { id },
    );
  });
}
