import { createHash, type Hash } from 'node:crypto';
import type { Database, Transaction } from '../postgres/database.ts';
import { query, queryColumn } from '../postgres/sql.ts';
import { invalidValue } from '../request-input.ts';

/** The end of the chain at some time: a user who kept it can tell that nothing before it was changed since. */
export type AuditAnchor = { position: string; hash: string };

/** What is wrong with the log; `position` is the place in the chain, null for an entry that is not in it. */
export type AuditFinding = {
  kind:
    | 'changed'
    | 'removed'
    | 'not_chained'
    | 'gap'
    | 'expiry_differs'
    | 'redaction_differs'
    | 'anchor_differs'
    | 'cut_off';
  position: string | null;
  entryId: string | null;
};

/** `expired`, `redacted`: how many entries retention removed, and erasures cut, as entries of the chain say. */
export type AuditVerdict = {
  entries: number;
  expired: number;
  redacted: number;
  last: AuditAnchor;
  findings: AuditFinding[];
};

const BATCH = 2_000;
/** More do not tell more. */
const MAX_FINDINGS = 100;
const START: AuditAnchor = { position: '0', hash: '' };

/**
 * Goes through the whole chain: finds entries that were changed, removed or put in beside the application. With an
 * anchor from before (`position:hash`), also a chain that was cut off or written again.
 * Throws RequestError `invalid_value`.
 */
export async function verifyAudit(database: Database, anchorText: string | null): Promise<AuditVerdict> {
  const anchor = anchorText === null ? null : parseAnchor(anchorText);
  return await database.transaction(async (trx) => {
    // The whole log as it is at one moment: retention marks links, and notes that in later ones.
    await query(trx, 'set transaction isolation level repeatable read, read only');
    return await verifyChain(trx, anchor);
  });
}

export async function verifyChain(trx: Transaction, anchor: AuditAnchor | null): Promise<AuditVerdict> {
  const findings: AuditFinding[] = [];
  const note = (kind: AuditFinding['kind'], position: string | null, entryId: string | null) => {
    if (findings.length < MAX_FINDINGS) findings.push({ kind, position, entryId });
  };
  const retention = retentionCheck(note);
  const redactions = redactionCheck(note);
  let last = START;
  let entries = 0;
  for await (const link of chainOf(trx)) {
    const { position, entryId, text, hash, redactedBy } = link;
    if (BigInt(position) !== BigInt(last.position) + 1n) note('gap', position, null);
    else if (text === null && link.expiredBy === null) note('removed', position, entryId);
    else if (text !== null && redactedBy === null && hashAfter(last.hash, text) !== hash)
      note('changed', position, entryId);
    retention.see(link);
    redactions.see(link);
    if (position === anchor?.position && hash !== anchor.hash) note('anchor_differs', position, entryId);
    last = { position, hash };
    entries += 1;
  }
  if (anchor !== null && BigInt(anchor.position) > BigInt(last.position))
    note('cut_off', last.position, null);
  for (const id of await notChained(trx)) note('not_chained', null, id);
  return { entries, expired: retention.end(), redacted: redactions.end(), last, findings };
}

const DAY_MS = 86_400_000;

type Note = (kind: AuditFinding['kind'], position: string, entryId: string | null) => void;

/** Retention leaves the entries of 30 days; a day less, because entries have the time at which their transactions began. */
const LEAST_AGE_MS = 29 * DAY_MS;

type Expired = { position: string; entries: number; hash: Hash; notBeforeMs: number };

/**
 * Compares what links say was removed with the entries that note it, which come later in the chain: so many, with these
 * hashes, and none that was younger than retention takes. How old a removed entry was at most, those before it tell.
 */
function retentionCheck(note: Note) {
  const open = new Map<string, Expired>();
  let latestMs = 0;
  let expired = 0;
  return {
    see({ position, entryId, hash, expiredBy, text }: Link): void {
      if (expiredBy !== null) {
        const all = open.get(expiredBy) ?? {
          position,
          entries: 0,
          hash: createHash('sha256'),
          notBeforeMs: 0,
        };
        all.hash.update(Buffer.from(hash, 'hex'));
        open.set(expiredBy, { ...all, entries: all.entries + 1, notBeforeMs: latestMs });
        expired += 1;
      }
      if (text === null) return;
      const { at, action, detail } = JSON.parse(text);
      latestMs = Math.max(latestMs, Date.parse(at));
      if (action !== EXPIRED) return;
      const all = open.get(entryId);
      open.delete(entryId);
      const isAsNoted =
        all !== undefined &&
        all.entries === detail.entries &&
        all.hash.digest('hex') === detail.hash &&
        all.notBeforeMs <= Date.parse(at) - LEAST_AGE_MS;
      if (!isAsNoted) note('expiry_differs', position, entryId);
    },
    /** How many have expired; those that no entry notes were just removed. */
    end(): number {
      for (const { position } of open.values()) note('removed', position, null);
      return expired;
    },
  };
}

const EXPIRED = 'audit.expired';
const REDACTED = 'audit.redacted';

/**
 * Compares entries from which an erasure took the id of an event with the entries that note it, which come later in the
 * chain: each has the hash of the rest. Nothing but such an id can have gone, and only from a dropped delivery's entry.
 */
function redactionCheck(note: Note) {
  const open = new Map<string, { position: string; entryId: string; hash: string | null }>();
  let redacted = 0;
  return {
    see({ position, entryId, redactedBy, text }: Link): void {
      if (redactedBy !== null) {
        const { action, detail } = JSON.parse(text ?? 'null') ?? {};
        const isAllowed = action === 'delivery.dropped' && detail.erased === 'eventId';
        if (text !== null && !isAllowed) note('changed', position, entryId);
        open.set(redactedBy, { position, entryId, hash: text === null ? null : hashAfter('', text) });
        redacted += 1;
      }
      if (text === null || !text.includes(REDACTED)) return;
      const { action, target, detail } = JSON.parse(text);
      if (action !== REDACTED) return;
      const noted = open.get(entryId);
      open.delete(entryId);
      const isAsNoted =
        noted !== undefined &&
        target === `entry ${noted.entryId}` &&
        (noted.hash === null || noted.hash === detail.hash);
      if (!isAsNoted) note('redaction_differs', position, entryId);
    },
    /** How many were redacted; those that no entry notes were just changed. */
    end(): number {
      for (const { position, entryId } of open.values()) note('changed', position, entryId);
      return redacted;
    },
  };
}

/** The end of the chain; position 0 while there are no entries. */
export async function auditAnchor(database: Database): Promise<AuditAnchor> {
  const [row] = await query<AuditAnchor>(
    database,
    `select position, encode(hash, 'hex') as hash from audit_chain order by position desc limit 1`,
  );
  return row ?? START;
}

/**
 * The whole log in the order of its chain, an entry a line: `{"position":…,"previousHash":…,"hash":…,"entry":{…}}`.
 * `hash` is the SHA-256 of the bytes of `previousHash` and of the text of `entry` as it stands in the line. An entry that
 * retention removed is null there, and `expiredBy` the id of the entry that notes it. Of an entry from which an erasure took
 * something, `hash` is over the text as it was written, and `redactedBy` is the id of the entry that notes it.
 */
export async function* exportAudit(database: Database): AsyncGenerator<string> {
  let previousHash = START.hash;
  for await (const { position, text, hash, expiredBy, redactedBy } of chainOf(database)) {
    const gone = expiredBy === null ? '' : `"expiredBy":${expiredBy},`;
    const cut = redactedBy === null ? '' : `"redactedBy":${redactedBy},`;
    yield `{"position":${position},"previousHash":"${previousHash}","hash":"${hash}",${gone}${cut}"entry":${text ?? 'null'}}\n`;
    previousHash = hash;
  }
}

type Link = {
  position: string;
  entryId: string;
  hash: string;
  expiredBy: string | null;
  redactedBy: string | null;
  text: string | null;
};

async function* chainOf(database: Database): AsyncGenerator<Link> {
  let after = START.position;
  for (let isMore = true; isMore; ) {
    const links = await query<Link>(
      database,
      `select at_position as position, entry_id as "entryId", encode(chained_hash, 'hex') as hash,
              expired_by as "expiredBy", redacted_by as "redactedBy", entry_text as text
         from audit_chain_after(cast(:after as bigint), :batch)`,
      { after, batch: BATCH },
    );
    yield* links;
    after = links.at(-1)?.position ?? after;
    isMore = links.length === BATCH;
  }
}

async function notChained(database: Database): Promise<string[]> {
  return await queryColumn(
    database,
    `select a.id from audit_log a where not exists (select from audit_chain c where c.entry_id = a.id)
      order by a.id limit :maxFindings`,
    { maxFindings: MAX_FINDINGS },
  );
}

function hashAfter(previousHash: string, text: string): string {
  return createHash('sha256').update(Buffer.from(previousHash, 'hex')).update(text).digest('hex');
}

function parseAnchor(text: string): AuditAnchor {
  const [, position, hash] = /^(\d{1,18}):([0-9a-f]{64})$/.exec(text.trim()) ?? [];
  if (position !== undefined && hash !== undefined) return { position, hash };
  throw invalidValue('An anchor is the position, a colon and the hash in hex, as the log has it.');
}
