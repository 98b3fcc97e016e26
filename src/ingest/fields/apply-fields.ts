import { noteTemplates } from '../../features/accounts/templates.ts';
import { noteProblems } from '../../features/accounts/upstream-problems.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { GROUP_FIELDS } from '../split/groups.ts';
import { readHistory } from '../split/history.ts';
import { isOptedOut } from '../split/preferences.ts';
import type { StatusItem } from '../split/status-items.ts';
import type { Owned, UpstreamItem } from '../split/upstream-items.ts';
import { applyCalls } from './calls.ts';
import { applyEchoes } from './echoes.ts';
import { valuesOfNumbers } from './field-values.ts';
import { applyGroups } from './groups.ts';
import { keepHistory } from './history.ts';
import { applyPreferences, preferenceReports, refusedReports } from './opt-outs.ts';
import { problemReports } from './problem-reports.ts';
import { applyHandovers, applyStandby } from './routing.ts';
import { templateReports } from './templates.ts';

const APPLIED_FIELDS: readonly string[] = [
  'calls',
  'smb_message_echoes',
  'standby',
  'messaging_handovers',
  'history',
  'user_preferences',
  ...GROUP_FIELDS,
];

/** Whether an item leads to more than its event, its message and its status. */
export function isApplied({ item }: Owned): boolean {
  return item.kind === 'upstream' || (item.kind === 'status' && isOptedOut(item));
}

/** Stores what changes in other fields than `messages` lead to, under the lock of customers (locks.ts) that the caller holds. */
export async function applyFields(trx: Transaction, owned: readonly Owned[]): Promise<void> {
  const applied = owned.filter(isApplied);
  if (applied.length === 0) return;
  const fields = applied.map(({ item }) => item).filter((item) => item.kind === 'upstream');
  const now = new Date();
  await noteProblems(
    trx,
    fields.flatMap((item) => problemReports(item, now)),
  );
  await noteTemplates(
    trx,
    fields.flatMap((item) => templateReports(item, now)),
  );
  const values = await valuesOfNumbers(trx, fields, APPLIED_FIELDS);
  const of = (field: string) => values.filter((one) => one.field === field);
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
    [...refusedReports(applied.filter(isStatus)), ...preferenceReports(of('user_preferences'))],
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
