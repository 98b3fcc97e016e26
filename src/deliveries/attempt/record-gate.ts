import { randomUUID } from 'node:crypto';
import { type Database, undone } from '../../platform/postgres/database.ts';
import { execute } from '../../platform/postgres/sql.ts';
import { settleDeliveries } from '../queue/settle.ts';

/** Between two looks whether attempts can be recorded again. */
const LOOK_MS = 1_000;

/** Shut while attempts cannot be recorded: what is sent then would be sent again with every lease. */
export type RecordGate = {
  isOpen(): boolean;
  /** After a record that failed: shuts the gate if nothing can be recorded, until something can. Returns isOpen. */
  check(): Promise<boolean>;
};

/**
 * Looks by writing what a record writes and undoing it, so nothing is sent to find out. `onOpen` is called when
 * recording works again, `onShut` with the reason when it does not.
 */
export function makeRecordGate(options: {
  database: Database;
  onShut: (error: unknown) => void;
  onOpen: () => void;
}): RecordGate {
  let open = true;
  let looking: Promise<boolean> | null = null;

  const look = async (): Promise<boolean> => {
    try {
      await checkRecording(options.database);
      if (!open) options.onOpen();
      open = true;
    } catch (error) {
      if (open) options.onShut(error);
      open = false;
      // Nothing has to be kept alive for it: a process that ends claims nothing more.
      setTimeout(() => void gate.check(), LOOK_MS).unref();
    }
    return open;
  };

  const gate: RecordGate = {
    isOpen: () => open,
    check: () => {
      looking ??= look().finally(() => {
        looking = null;
      });
      return looking;
    },
  };
  return gate;
}

/** Writes what recording an attempt writes and undoes it. Rejects with the reason when nothing can be recorded. */
async function checkRecording(database: Database): Promise<void> {
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
