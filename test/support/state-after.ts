import { statesKept } from '../../src/features/messages/statuses.ts';

/** The state of a message after one more status, as `move_message_states` moves it in the database. */
export function stateAfter(current: string | null, incoming: string): string {
  const kept = statesKept(incoming);
  const isKept = current !== null && (kept === null || kept.split(',').includes(current));
  return isKept ? current : incoming;
}
