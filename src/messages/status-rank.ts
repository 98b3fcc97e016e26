const RANKS: ReadonlyMap<string, number> = new Map([
  ['accepted', 0],
  ['sent', 1],
  ['delivered', 2],
  ['read', 3],
  ['played', 4],
]);
const SENT_RANK = 1;

/**
 * The state of an outbound message after one more status. Statuses come late, twice and in any order: the state only
 * moves up sent → delivered → read → played. `failed` is final and can only follow accepted or sent. A status we do
 * not know sets the state where there is none and gives way to any that we know.
 */
export function nextStatus(current: string | null, incoming: string): string {
  if (current === null) return incoming;
  if (current === 'failed') return current;
  const currentRank = RANKS.get(current);
  if (incoming === 'failed')
    return currentRank === undefined || currentRank <= SENT_RANK ? incoming : current;
  const incomingRank = RANKS.get(incoming);
  if (incomingRank === undefined) return current;
  return currentRank === undefined || incomingRank > currentRank ? incoming : current;
}
