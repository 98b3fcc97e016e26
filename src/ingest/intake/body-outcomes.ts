import {
  finishBodies,
  type InboxBody,
  type InboxOutcome,
  type QuarantineNote,
} from '../../engine/inbox/bodies.ts';
import { countQuarantined, type QuarantineCount } from '../../engine/inbox/quarantine-counts.ts';
import { AWAITS_NUMBER, insertWaitingBodies } from '../../engine/inbox/waiting-bodies.ts';
import { askForNumbers, askForNumbersAgain } from '../../features/accounts/followed-numbers.ts';
import { noteSharedWaba } from '../../features/setup-links/lost-return.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { sharedWabas } from '../fields/partners.ts';
import type { UpstreamItem } from '../split/upstream-items.ts';
import type { BodyPortion, ReadBody } from './portions.ts';

export async function finish(
  trx: Transaction,
  portions: readonly BodyPortion[],
  reasons: ReadonlyMap<UpstreamItem, string>,
): Promise<InboxOutcome[]> {
  const outcomes = portions.map((portion) => outcomeOf(portion, reasons));
  await finishBodies(trx, outcomes);
  await countQuarantined(trx, countsOf(portions, reasons));
  const taken = portions.filter(({ isLast }) => isLast).map(({ read }) => read);
  await askUpstream(trx, taken, withEarlier(taken, reasons));
  for (const shared of taken.flatMap(sharedWabas)) await noteSharedWaba(trx, shared);
  return outcomes;
}

function outcomeOf(
  { read, items, isLast }: BodyPortion,
  reasons: ReadonlyMap<UpstreamItem, string>,
): InboxOutcome {
  const { day, id, partly } = read.body;
  if (read.unreadable !== null) {
    return { day, id, state: 'failed', notes: [{ path: '', reason: read.unreadable }], partly: null };
  }
  const ofItems = [...(partly?.notes ?? []), ...items.flatMap((item) => noteOf(item, reasons))];
  if (!isLast) {
    const until = items.at(-1)?.path ?? '';
    return { day, id, state: 'new', notes: read.body.notes, partly: { until, notes: ofItems } };
  }
  const notes = [...read.quarantined.map(({ path, reason }) => ({ path, reason })), ...ofItems];
  return { day, id, state: stateOf(notes, ofItems), notes, partly: null };
}

function stateOf(
  notes: readonly QuarantineNote[],
  ofItems: readonly QuarantineNote[],
): InboxOutcome['state'] {
  const has = (wanted: string) => ofItems.some(({ reason }) => reason === wanted);
  if (has('failed')) return 'failed';
  if (has(AWAITS_NUMBER)) return 'waiting';
  return notes.length > 0 ? 'quarantined' : 'done';
}

function noteOf(item: UpstreamItem, reasons: ReadonlyMap<UpstreamItem, string>): QuarantineNote[] {
  const reason = reasons.get(item);
  return reason === undefined ? [] : [{ path: item.path, reason }];
}

/**
 * Beyond the known reasons, upstream chooses the words: a bounded number of them may become rows. What is quarantined a
 * second time for the same reason was counted the first time.
 */
function countsOf(
  portions: readonly BodyPortion[],
  reasons: ReadonlyMap<UpstreamItem, string>,
): QuarantineCount[] {
  const counts = new Map<string, QuarantineCount>();
  const alreadyCounted = new Map(
    portions.map(({ read }) => [read, new Set((read.body.notes ?? []).map(noteKey))]),
  );
  const add = (read: ReadBody, { path, reason }: QuarantineNote, field: string, wabaId: string) => {
    if (alreadyCounted.get(read)?.has(noteKey({ path, reason }))) return;
    const counted = read.unreadable === null ? reason : 'unreadable_body';
    const key = JSON.stringify([counted, field, wabaId]);
    const known = counts.get(key);
    if (known) known.count += 1;
    else counts.set(key, { reason: counted, field, wabaId, count: 1 });
  };
  for (const { read, items, isLast } of portions) {
    if (read.unreadable !== null) add(read, { path: '', reason: read.unreadable }, '', '');
    for (const part of isLast ? read.quarantined : [])
      add(read, part, (part.field ?? '').slice(0, 100), part.wabaId ?? '');
    for (const item of items) {
      for (const note of noteOf(item, reasons))
        if (note.reason !== AWAITS_NUMBER) add(read, note, fieldOf(item), item.wabaId);
    }
  }
  return [...counts.values()];
}

function fieldOf(item: UpstreamItem): string {
  return item.kind === 'upstream' ? item.field : 'messages';
}

function noteKey({ path, reason }: QuarantineNote): string {
  return `${path} ${reason}`;
}

/** With those of the items that earlier transactions ingested. */
function withEarlier(
  taken: readonly ReadBody[],
  reasons: ReadonlyMap<UpstreamItem, string>,
): ReadonlyMap<UpstreamItem, string> {
  const earlier = taken.flatMap(({ body: { partly }, items }) => {
    const noted = new Map(partly?.notes.map(({ path, reason }) => [path, reason]));
    return items.flatMap((item) => {
      const reason = noted.get(item.path);
      return reason === undefined ? [] : [[item, reason] as const];
    });
  });
  return earlier.length === 0 ? reasons : new Map([...reasons, ...earlier]);
}

/** Fields by which upstream reports that something about the numbers of a WABA changed. */
const NUMBER_FIELDS: ReadonlySet<string> = new Set([
  'phone_number_quality_update',
  'phone_number_name_update',
  'account_update',
]);

/** Has upstream asked about WABAs: for the numbers that parts of the bodies wait for, and when it says that they changed. */
async function askUpstream(
  trx: Transaction,
  bodies: readonly { body: InboxBody; items: UpstreamItem[] }[],
  reasons: ReadonlyMap<UpstreamItem, string>,
): Promise<void> {
  const waiting = bodies.flatMap(({ body: { day, id }, items }) =>
    items
      .filter((item) => reasons.get(item) === AWAITS_NUMBER)
      .map(({ wabaId, phoneNumberId }) => ({ wabaId, phoneNumberId: phoneNumberId ?? '', day, id })),
  );
  if (waiting.length > 0) {
    const distinct = new Map(waiting.map((one) => [Object.values(one).join(' '), one]));
    await insertWaitingBodies(trx, [...distinct.values()]);
    await askForNumbers(trx, [...new Set(waiting.map(({ wabaId }) => wabaId))]);
  }
  const changed = bodies.flatMap(({ items }) =>
    items.filter((item) => NUMBER_FIELDS.has(fieldOf(item))).map(({ wabaId }) => wabaId),
  );
  if (changed.length > 0) await askForNumbersAgain(trx, [...new Set(changed)], { atOnce: false });
}
