import { deleteBodies, replaceBodies } from '../../engine/inbox/bodies.ts';
import { lockIntake } from '../../engine/inbox/intake-lock.ts';
import { shardOf } from '../../engine/inbox/shards.ts';
import {
  items,
  type JsonNode,
  member,
  members,
  parseJson,
  sourceWithEdits,
  stringOf,
  textOf,
} from '../../platform/json/json-text.ts';
import { idOf, rawIdOf } from '../../platform/json/storable-text.ts';
import { byteaArray } from '../../platform/postgres/arrays.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { query, queryColumn, queryValue } from '../../platform/postgres/sql.ts';
import { findErased } from '../intake/erased-name.ts';
import { recipientOf } from '../split/echoes.ts';
import { ERASED_PART, isErased, type PersonIds, type Spelled } from '../split/item-context.ts';
import { memberRemovals } from '../split/member-removals.ts';
import { type IdentityChange, readIdentityChange } from '../split/message-items.ts';
import {
  type NumberItem,
  type QuarantinedPart,
  splitUpstreamBody,
  UnreadableBody,
  type UpstreamItem,
  upstreamRootOf,
} from '../split/upstream-items.ts';
import { otherNames } from '../split/value-members.ts';

export type ErasedFromBodies = {
  wabaId: string;
  /** Phone numbers and user ids of the customer, or the id of the group: what came later than a time of theirs stays. */
  untils: ReadonlyMap<string, string>;
  isGroup: boolean;
  /** Null: whatever number they came for. */
  phoneNumberId: string | null;
};

/** With the ids that were theirs when a body came. */
type Them = Omit<ErasedFromBodies, 'untils'> & { ids: ReadonlySet<string> };

/** Where a page ended; null: there are no further bodies. */
export type BodyPlace = { day: string; id: string };

type PageEnd = { next: BodyPlace | null; changed: number; deleted: number; busy: boolean };

const ROWS_PER_PAGE = 5_000;

export const FIRST_BODY: BodyPlace = { day: '0001-01-01', id: '0' };

/**
 * Takes a customer, or a group, out of the next raw bodies: a body that is ingested is deleted, out of any other their
 * parts are cut. `busy`: one of them is still to be ingested, and nothing was changed.
 */
export async function eraseFromBodies(
  trx: Transaction,
  who: ErasedFromBodies,
  after: BodyPlace,
): Promise<PageEnd> {
  const page = await readPage(trx, after);
  // Most pages hold nothing of theirs: intake does not wait while those are read.
  if ((await findBodies(trx, who, page)).length === 0)
    return { next: page.next, changed: 0, deleted: 0, busy: false };
  await lockIntake(trx, shardOf(who.wabaId));
  const found = await findBodies(trx, who, page);
  if (found.some(({ state }) => state === 'new')) return { next: after, changed: 0, deleted: 0, busy: true };
  const changes = found.map((row) => ({
    row,
    rest: row.state === 'done' ? null : withoutThem(row.body, { ...who, ids: new Set(row.ids) }),
  }));
  const deleted = changes.filter(({ rest }) => rest === null).map(({ row }) => row.id);
  await deleteBodies(trx, page.day, deleted);
  const cut = changes.flatMap(({ row, rest }) =>
    rest === null || rest.equals(row.body) ? [] : [{ id: row.id, rest }],
  );
  await replaceBodies(trx, page.day, cut);
  return { next: page.next, changed: cut.length, deleted: deleted.length, busy: false };
}

export async function eraseWabaBodies(
  trx: Transaction,
  wabaId: string,
  after: BodyPlace,
): Promise<Pick<PageEnd, 'next' | 'deleted'>> {
  const page = await readPage(trx, after);
  const ids = await queryColumn<string>(
    trx,
    `select id from inbox where received_day = :day and id > :from and id <= :id and waba_id = :wabaId`,
    { day: page.day, id: page.id, from: page.from, wabaId },
  );
  await deleteBodies(trx, page.day, ids);
  return { next: page.next, deleted: ids.length };
}

/** Cuts out of the next raw bodies of a WABA what was erased before it came again. */
export async function eraseRepeats(
  trx: Transaction,
  { wabaId, since }: { wabaId: string; since: Date },
  after: BodyPlace,
): Promise<BodyPlace | null> {
  const page = await readPage(trx, after);
  const rows = await query<FoundBody>(
    trx,
    `select id, state, body from inbox
      where received_day = :day and id > :from and id <= :id and waba_id = :wabaId and received_at >= :since
        and state <> 'new'`,
    { day: page.day, id: page.id, from: page.from, wabaId, since },
  );
  const bodies = rows.flatMap((row) => {
    const split = splitOrNull(row.body);
    return split === null ? [] : [{ row, items: split.items, parts: split.quarantined }];
  });
  const erased = await findErased(
    trx,
    bodies.flatMap((one) => one.items),
  );
  const hit = bodies.filter((one) => one.items.some((item) => erased.has(item)));
  const isGone = ({ row }: { row: FoundBody }) => row.state === 'done';
  await deleteBodies(
    trx,
    page.day,
    hit.filter(isGone).map(({ row }) => row.id),
  );
  const cut = hit
    .filter((one) => !isGone(one))
    .map(({ row, items: ofBody }) => {
      const theirs = ofBody.filter((item) => erased.has(item));
      const rest = cutOut(
        row.body,
        theirs.map(({ path }) => path),
        new Set(theirs.flatMap(peopleOf)),
      );
      return { id: row.id, rest };
    });
  await replaceBodies(trx, page.day, cut);
  return page.next;
}

/** The day and id of its last body, the id that it begins behind, and where the next page begins. */
type Page = BodyPlace & { from: string; next: BodyPlace | null };

/** A page that is not full is the day's last one: bodies that arrive as fast as pages are read would never end. */
async function readPage(trx: Transaction, { day, id: from }: BodyPlace): Promise<Page> {
  const [row] = await query<{ last: string | null; count: number }>(
    trx,
    `select max(id) as last, cast(count(*) as integer) as count from (
       select id from inbox where received_day = :day and id > :from order by id limit ${ROWS_PER_PAGE}) as page`,
    { day, from },
  );
  const id = row?.last ?? from;
  return { day, id, from, next: row?.count === ROWS_PER_PAGE ? { day, id } : await dayAfter(trx, day) };
}

async function dayAfter(trx: Transaction, day: string): Promise<BodyPlace | null> {
  const next = await queryValue<string>(
    trx,
    'select min(received_day) from inbox where received_day > cast(:day as date)',
    { day },
  );
  return next === null ? null : { day: next, id: '0' };
}

type FoundBody = { id: string; state: string; body: Buffer };

/** `ids`: those that were theirs when it came. */
type TheirBody = FoundBody & { ids: string[] };

async function findBodies(
  trx: Transaction,
  who: ErasedFromBodies,
  { day, id, from }: Page,
): Promise<TheirBody[]> {
  const ids = [...who.untils.keys()];
  return await query<TheirBody>(
    trx,
    `select id, state, body,
            array(select name from unnest(cast(:ids as text[]), cast(:untils as timestamptz[])) as n (name, until)
                   where received_at <= until) as ids
       from inbox
      where received_day = :day and id > :from and id <= :id and waba_id = :wabaId
        and exists (select from unnest(cast(:needles as bytea[]), cast(:untils as timestamptz[])) as n (needle, until)
                     where received_at <= until and position(needle in body) > 0)`,
    {
      day,
      id,
      from,
      wabaId: who.wabaId,
      ids,
      untils: [...who.untils.values()],
      needles: byteaArray(ids.map((name) => Buffer.from(name))),
    },
  );
}

/** The body without their parts; null when nothing is left in it, or when it cannot be read. */
function withoutThem(body: Buffer, who: Them): Buffer | null {
  const split = splitOrNull(body);
  const root = upstreamRootOf(body);
  if (split === null || root === null) return null;
  const nodeAt = pathReader(root);
  const isPart = (part: Part) => isPartTheirs(part, nodeAt(part.path), who);
  const theirs = split.items.filter((item) =>
    item.kind === 'upstream' ? isPart(item) : isTheirs(item, who),
  );
  const parts = split.quarantined.filter(isPart);
  if (theirs.length === split.items.length && parts.length === split.quarantined.length) return null;
  return cutOut(
    body,
    [...theirs, ...parts].map(({ path }) => path),
    who.isGroup ? new Set() : who.ids,
  );
}

function splitOrNull(body: Buffer): ReturnType<typeof splitUpstreamBody> | null {
  try {
    return splitUpstreamBody(body);
  } catch (error) {
    if (error instanceof UnreadableBody) return null;
    throw error;
  }
}

function isTheirs(item: NumberItem, { ids, isGroup, phoneNumberId }: Them): boolean {
  if (phoneNumberId !== null && item.phoneNumberId !== phoneNumberId) return false;
  const groupId = item.kind === 'payment' ? null : item.groupId;
  if (isGroup) return groupId !== null && ids.has(groupId);
  // A customer's message to a group belongs to no conversation with one customer.
  if (phoneNumberId !== null && groupId !== null) return false;
  return peopleOf(item).some((id) => ids.has(id));
}

function peopleOf(item: UpstreamItem): string[] {
  if (item.kind === 'upstream') return [];
  if (item.kind !== 'message') {
    const participant = item.kind === 'status' ? item.participant : null;
    return [...idsOf(item.recipient, null), participant].filter((id) => id !== null);
  }
  return idsOf(item.sender, item.identityChange);
}

function idsOf(person: PersonIds & Partial<Spelled>, change: IdentityChange | null): string[] {
  const { waId, userId, otherPhone = null } = person;
  const ids = [waId, userId, otherPhone];
  if (change !== null) ids.push(change.waId, change.userId, change.previousWaId, change.previousUserId);
  return ids.filter((id) => id !== null);
}

/** Every id by which an inbound message (`rawJson` of its item) names its sender. */
export function idsInMessage(rawJson: string): string[] {
  const message = parseJson(rawJson, { deepNodes: 'mark' });
  const sender = { waId: idOf(member(message, 'from')), userId: idOf(member(message, 'from_user_id')) };
  return idsOf(sender, readIdentityChange(message, stringOf(member(message, 'type')) ?? ''));
}

/** The ids by which a message that the business wrote in the WhatsApp Business app names its recipient. */
export function idsInEcho(rawJson: string): string[] {
  const { waId, userId } = recipientOf(parseJson(rawJson, { deepNodes: 'mark' }));
  return [waId, userId].flatMap((id) => id ?? []);
}

type Part = Pick<QuarantinedPart, 'path' | 'phoneNumberId'>;

/** A field that is not `messages` says nowhere for certain whom it is about, nor does what is no item: any value that is one of the ids counts. */
function isPartTheirs(part: Part, node: JsonNode | null, { ids, phoneNumberId }: Them): boolean {
  if (phoneNumberId !== null && part.phoneNumberId !== null && part.phoneNumberId !== phoneNumberId)
    return false;
  return node !== null && mentions(node, ids);
}

function mentions(node: JsonNode, ids: ReadonlySet<string>): boolean {
  if (node.kind === 'array') return items(node).some((item) => mentions(item, ids));
  if (node.kind === 'object') return members(node).some(({ value }) => mentions(value, ids));
  const text = textOf(node);
  return text !== null && (ids.has(text) || ids.has(text.replace(/^\+/, '')));
}

const PATH_PART = /([a-z_]+)(?:\[(\d+)\])?/g;

/** Finds values by their paths, and reads each list once: a body has up to as many paths as a list has items. */
function pathReader(root: JsonNode): (path: string) => JsonNode | null {
  const lists = new Map<number, JsonNode[]>();
  const itemsOf = (node: JsonNode | null) => {
    if (node === null) return [];
    const list = lists.get(node.cell) ?? items(node);
    lists.set(node.cell, list);
    return list;
  };
  return (path) => {
    let node: JsonNode | null = root;
    for (const [, name = '', position] of path.matchAll(PATH_PART)) {
      node = member(node, name);
      if (position !== undefined) node = itemsOf(node)[Number(position)] ?? null;
    }
    return node;
  };
}

/** Puts a mark in place of what is at these paths, and empties the entries of these people beside it. */
function cutOut(body: Buffer, paths: readonly string[], people: ReadonlySet<string>): Buffer {
  const root = upstreamRootOf(body);
  if (root === null || paths.length === 0) return body;
  const all = new Set(paths);
  const nodeAt = pathReader(root);
  const nodes = paths.filter((path) => !isWithin(path, all)).flatMap((path) => nodeAt(path) ?? []);
  const edits = nodes
    .filter((node) => !isErased(node))
    .map(({ start, end }) => ({ start, end, text: ERASED_PART }));
  const cutValues = new Set(paths.map((path) => path.slice(0, path.lastIndexOf('.value.') + 1)));
  for (const [n, entry] of items(member(root, 'entry')).entries()) {
    for (const [m, change] of items(member(entry, 'changes')).entries()) {
      const path = `entry[${n}].changes[${m}]`;
      if (isWithin(`${path}.value.contacts`, all)) continue;
      const value = member(change, 'value');
      if (value !== null && cutValues.has(`${path}.`))
        edits.push(...memberRemovals(value, otherNames(value)));
      for (const contact of items(member(value, 'contacts'))) {
        const ids = [rawIdOf(member(contact, 'wa_id')), rawIdOf(member(contact, 'user_id'))];
        const isTheirs = ids.some((id) => id !== null && people.has(id));
        if (isTheirs) edits.push({ start: contact.start, end: contact.end, text: '{}' });
      }
    }
  }
  return Buffer.from(sourceWithEdits(root, edits));
}

function isWithin(path: string, paths: ReadonlySet<string>): boolean {
  for (let end = path.lastIndexOf('.'); end > 0; end = path.lastIndexOf('.', end - 1))
    if (paths.has(path.slice(0, end))) return true;
  return false;
}
