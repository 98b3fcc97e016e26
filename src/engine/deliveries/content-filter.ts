import { filterOf } from '../endpoint/event-filter.ts';

/** Called for each delivery that the content filter of an endpoint spared; only a worker counts them. */
export const filteredDeliveries: { note: (() => void) | null } = { note: null };

/** Judges an event by filters; its data is read once, when a filter asks. What is not known yet is judged at its release. */
export function contentJudge(dataJson: string | null): (filter: readonly string[]) => boolean {
  let data: { value: unknown } | null = null;
  return (filter) => {
    if (dataJson === null) return true;
    data ??= { value: JSON.parse(dataJson) };
    const isTaken = filterOf(filter)(data.value);
    if (!isTaken) filteredDeliveries.note?.();
    return isTaken;
  };
}
