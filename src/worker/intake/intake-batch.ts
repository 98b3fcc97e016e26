import { type Database, LastStatements, type Transaction } from '../../database/database.ts';
import { isTransientError } from '../../database/error-class.ts';
import {
  countSetAside,
  finishBodies,
  type InboxBody,
  type InboxOutcome,
  type SetAsideCount,
  type SetAsideNote,
  takeNewBodies,
} from '../../database/inbox.ts';
import { tryIntakeLock } from '../../database/locks.ts';
import type { ClaimedDelivery } from '../../database/session-claims.ts';
import { AWAITS_NUMBER } from '../../database/waiting-bodies.ts';
import { type SetAside, splitUpstreamBody, type UpstreamItem } from '../../domain/upstream/upstream-items.ts';
import type { DirectClaims } from '../../webhooks/session/direct-claims.ts';
import type { Logger } from '../logger.ts';
import { askUpstream } from './ask-upstream.ts';
import { commitItems } from './commit-items.ts';
import { sortItems } from './sort-items.ts';

/** Bodies and bytes per transaction: enough to share its cost, little enough to hold in memory. */
const BATCH = { bodies: 500, bytes: 16 * 1024 * 1024 };

type ReadBody = { body: InboxBody; items: UpstreamItem[]; setAside: SetAside[]; unreadable: string | null };

export type IntakeTools = {
  database: Database;
  /** Claims for this process's session, when there is one. */
  directClaims: () => DirectClaims | null;
  logger: Logger;
  /** For metrics: told of each body once what was made of it is committed. */
  onBody: (state: InboxOutcome['state']) => void;
};

/**
 * Takes in the oldest bodies, all in one transaction; returns whether more may be waiting.
 * When the transaction fails for a reason that lies in the data, it is redone item group by item group until the
 * items that cannot be stored are found; they are set aside with the reason and everything else goes on.
 */
export async function takeInBatch(tools: IntakeTools): Promise<boolean> {
  const claims = tools.directClaims();
  try {
    const taken = await takeInTogether(tools, claims);
    claims?.carry(taken.claimed);
    for (const { state } of taken.outcomes) tools.onBody(state);
    return taken.more;
  } catch (error) {
    claims?.cancel();
    if (isTransientError(error)) throw error;
    tools.logger.warn({ err: error }, 'an upstream body cannot be stored as it is: looking for the item');
    return await takeInPieces(tools);
  }
}

type Taken = { claimed: ClaimedDelivery[]; outcomes: InboxOutcome[]; more: boolean };

async function takeInTogether(tools: IntakeTools, claims: DirectClaims | null): Promise<Taken> {
  return await tools.database.transaction(async (trx) => {
    const { bodies, more } = await takeBodies(trx);
    if (bodies.length === 0) return { claimed: [], outcomes: [], more: false };
    const items = bodies.flatMap((body) => body.items);
    const { owned, reasons } = await sortItems(trx, items);
    const finished = finish(trx, bodies, reasons);
    const [committing, outcomes] = await Promise.all([commitItems(trx, owned, claims), finished]);
    return new LastStatements(committing.answers.then((claimed) => ({ claimed, outcomes, more })));
  });
}

/** Nothing when another process is taking in. */
async function takeBodies(trx: Transaction): Promise<{ bodies: ReadBody[]; more: boolean }> {
  const [locked, stored] = await Promise.all([tryIntakeLock(trx), takeNewBodies(trx, BATCH)]);
  if (!locked) return { bodies: [], more: false };
  const bytes = stored.reduce((sum, { body }) => sum + body.length, 0);
  return { bodies: stored.map(readBody), more: stored.length === BATCH.bodies || bytes > BATCH.bytes / 2 };
}

/** The same work with one savepoint per group of items, halving a group that fails. */
async function takeInPieces({ database, logger, onBody }: IntakeTools): Promise<boolean> {
  const taken = await database.transaction(async (trx) => {
    const { bodies, more } = await takeBodies(trx);
    const reasons = new Map<UpstreamItem, string>();
    await commitOrHalve(
      trx,
      bodies.flatMap((body) => body.items),
      logger,
      reasons,
    );
    return { outcomes: await finish(trx, bodies, reasons), more };
  });
  for (const { state } of taken.outcomes) onBody(state);
  return taken.more;
}

async function commitOrHalve(
  trx: Transaction,
  items: readonly UpstreamItem[],
  logger: Logger,
  reasons: Map<UpstreamItem, string>,
): Promise<void> {
  if (items.length === 0) return;
  try {
    await trx.transaction(async (savepoint) => {
      const sorted = await sortItems(savepoint, items);
      await (await commitItems(savepoint, sorted.owned, null)).answers;
      for (const [item, reason] of sorted.reasons) reasons.set(item, reason);
    });
  } catch (error) {
    if (isTransientError(error)) throw error;
    const [only] = items;
    if (items.length === 1 && only !== undefined) {
      logger.error({ err: error, path: only.path }, 'an upstream item cannot be stored; its body is kept');
      reasons.set(only, 'failed');
      return;
    }
    const half = items.length >> 1;
    await commitOrHalve(trx, items.slice(0, half), logger, reasons);
    await commitOrHalve(trx, items.slice(half), logger, reasons);
  }
}

function readBody(body: InboxBody): ReadBody {
  try {
    const split = splitUpstreamBody(body.body);
    return { body, ...split, items: split.items.filter((item) => isLeft(body, item)), unreadable: null };
  } catch (error) {
    return {
      body,
      items: [],
      setAside: [],
      unreadable: error instanceof Error ? error.message : 'unreadable body',
    };
  }
}

/** Of a body that was taken in before, only what was set aside then: the deduplication keys of the rest may be forgotten. */
function isLeft({ notes }: InboxBody, { path }: UpstreamItem): boolean {
  return notes === null || notes.some((note) => path.startsWith(note.path));
}

async function finish(
  trx: Transaction,
  bodies: readonly ReadBody[],
  reasons: ReadonlyMap<UpstreamItem, string>,
): Promise<InboxOutcome[]> {
  const outcomes = bodies.map((body) => outcomeOf(body, reasons));
  await finishBodies(trx, outcomes);
  await countSetAside(trx, countsOf(bodies, reasons));
  await askUpstream(trx, bodies, reasons);
  return outcomes;
}

function outcomeOf(read: ReadBody, reasons: ReadonlyMap<UpstreamItem, string>): InboxOutcome {
  const { day, id } = read.body;
  if (read.unreadable !== null) {
    return { day, id, state: 'failed', notes: [{ path: '', reason: read.unreadable }] };
  }
  const ofItems = read.items.flatMap((item) => {
    const reason = reasons.get(item);
    return reason === undefined ? [] : [{ path: item.path, reason }];
  });
  const notes = [...read.setAside.map(({ path, reason }) => ({ path, reason })), ...ofItems];
  const has = (wanted: string) => ofItems.some(({ reason }) => reason === wanted);
  if (has('failed')) return { day, id, state: 'failed', notes };
  if (has(AWAITS_NUMBER)) return { day, id, state: 'waiting', notes };
  return { day, id, state: notes.length > 0 ? 'set_aside' : 'done', notes };
}

/**
 * Beyond the known reasons, upstream chooses the words: a bounded number of them may become rows. What is set aside a
 * second time for the same reason was counted the first time.
 */
function countsOf(bodies: readonly ReadBody[], reasons: ReadonlyMap<UpstreamItem, string>): SetAsideCount[] {
  const counts = new Map<string, SetAsideCount>();
  const add = (read: ReadBody, note: SetAsideNote, field: string, wabaId: string) => {
    if (read.body.notes?.some(({ path, reason }) => path === note.path && reason === note.reason)) return;
    const reason = read.unreadable === null ? note.reason : 'unreadable_body';
    const key = JSON.stringify([reason, field, wabaId]);
    const known = counts.get(key);
    if (known) known.count += 1;
    else counts.set(key, { reason, field, wabaId, count: 1 });
  };
  for (const read of bodies) {
    if (read.unreadable !== null) add(read, { path: '', reason: read.unreadable }, '', '');
    for (const part of read.setAside) add(read, part, (part.field ?? '').slice(0, 100), part.wabaId ?? '');
    for (const item of read.items) {
      const reason = reasons.get(item);
      if (reason !== undefined && reason !== AWAITS_NUMBER)
        add(read, { path: item.path, reason }, 'messages', item.wabaId);
    }
  }
  return [...counts.values()];
}
