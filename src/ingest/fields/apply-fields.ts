import { noteTemplates } from '../../features/accounts/templates.ts';
import { noteProblems, UNPAID_CODE } from '../../features/accounts/upstream-problems.ts';
import { OPTED_OUT_CODE } from '../../features/customers/opt-outs.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { GROUP_FIELDS } from '../split/groups.ts';
import { readHistory } from '../split/history.ts';
import { hasError, type StatusItem } from '../split/status-items.ts';
import type { Owned, UpstreamItem } from '../split/upstream-items.ts';
import { applyCalls } from './calls.ts';
import { applyEchoes } from './echoes.ts';
import { valuesOfNumbers } from './field-values.ts';
import { applyGroups } from './groups.ts';
import { keepHistory } from './history.ts';
import { applyPreferences, preferenceReports, refusedReports, wordReports } from './opt-outs.ts';
import { problemReports, unpaidReports } from './problem-reports.ts';
import { applyHandovers, applyStandby } from './routing.ts';
import { templateReports } from './templates.ts';
import { applyUserIds } from './user-ids.ts';

const APPLIED_FIELDS: readonly string[] = [
  'calls',
  'smb_message_echoes',
  'standby',
  'messaging_handovers',
  'history',
  'user_preferences',
  'user_id_update',
  ...GROUP_FIELDS,
];

/** Errors of a status that say something about more than its message. */
const APPLIED_ERRORS = [OPTED_OUT_CODE, UNPAID_CODE];

/** Whether an item leads to more than its event, its message and its status. */
export function isApplied({ item, wish }: Pick<Owned, 'item' | 'wish'>): boolean {
  return (
    wish !== undefined ||
    item.kind === 'upstream' ||
    (item.kind === 'status' && APPLIED_ERRORS.some((code) => hasError(item, code)))
  );
}

/** Stores what changes in other fields than `messages` lead to, under the lock of customers (locks.ts) that the caller holds. */
export async function applyFields(trx: Transaction, owned: readonly Owned[]): Promise<void> {
  const applied = owned.filter(isApplied);
  if (applied.length === 0) return;
  const fields = applied.map(({ item }) => item).filter((item) => item.kind === 'upstream');
  const refused = (code: number) => applied.filter(isStatus).filter(({ item }) => hasError(item, code));
  const now = new Date();
  await noteProblems(trx, [
    ...fields.flatMap((item) => problemReports(item, now)),
    ...unpaidReports(refused(UNPAID_CODE), now),
  ]);
  await noteTemplates(
    trx,
    fields.flatMap((item) => templateReports(item, now)),
  );
  const values = await valuesOfNumbers(trx, fields, APPLIED_FIELDS);
  const of = (field: string) => values.filter((one) => one.field === field);
  await applyUserIds(trx, of('user_id_update'));
  await applyCalls(trx, of('calls'), now);
  await applyEchoes(trx, of('smb_message_echoes'));
  await applyStandby(trx, of('standby'), now);
  await applyHandovers(trx, of('messaging_handovers'), now);
  await applyGroups(
    trx,
    values.filter(({ field }) => GROUP_FIELDS.includes(field)),
    now,
  );
  await applyPreferences(
    trx,
    [
      ...refusedReports(refused(OPTED_OUT_CODE)),
      ...preferenceReports(of('user_preferences')),
      ...wordReports(applied),
    ],
    now,
  );
  await keepHistory(
    trx,
    of('history').flatMap(({ wabaId, phoneNumberId, value }) =>
      readHistory(value).map((piece) => ({ ...piece, wabaId, phoneNumberId })),
    ),
  );
}

function isStatus(owned: Owned): owned is Owned<UpstreamItem & StatusItem> {
  return owned.item.kind === 'status';
}
