import { askForNumbers, askForNumbersAgain } from '../../accounts/followed-numbers.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import type { InboxBody } from '../inbox/inbox.ts';
import type { SetAside, UpstreamItem } from '../split/upstream-items.ts';
import { AWAITS_NUMBER, insertWaitingBodies } from '../waiting-bodies.ts';

/** Fields by which upstream tells that something about the numbers of a WABA changed. */
const NUMBER_FIELDS: ReadonlySet<string | null> = new Set([
  'phone_number_quality_update',
  'phone_number_name_update',
  'account_update',
]);

/** Has upstream asked about WABAs: for the numbers that parts of the bodies wait for, and when it says that they changed. */
export async function askUpstream(
  trx: Transaction,
  bodies: readonly { body: InboxBody; items: UpstreamItem[]; setAside: SetAside[] }[],
  reasons: ReadonlyMap<UpstreamItem, string>,
): Promise<void> {
  const waiting = bodies.flatMap(({ body: { day, id }, items }) =>
    items
      .filter((item) => reasons.get(item) === AWAITS_NUMBER)
      .map(({ wabaId, phoneNumberId }) => ({ wabaId, phoneNumberId, day, id })),
  );
  if (waiting.length > 0) {
    const distinct = new Map(waiting.map((one) => [Object.values(one).join(' '), one]));
    await insertWaitingBodies(trx, [...distinct.values()]);
    await askForNumbers(trx, [...new Set(waiting.map(({ wabaId }) => wabaId))]);
  }
  const changed = bodies.flatMap(({ setAside }) =>
    setAside.flatMap(({ field, wabaId }) => (NUMBER_FIELDS.has(field) && wabaId !== null ? [wabaId] : [])),
  );
  if (changed.length > 0) await askForNumbersAgain(trx, [...new Set(changed)], { atOnce: false });
}
