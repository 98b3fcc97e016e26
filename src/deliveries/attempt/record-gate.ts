import type { Database } from '../../platform/postgres/database.ts';
import { checkRecording } from '../queue/record-check.ts';

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
