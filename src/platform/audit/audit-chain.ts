import { createHash } from 'node:crypto';
import type { Database } from '../postgres/database.ts';
import { query } from '../postgres/sql.ts';
import { invalidValue } from '../request-input.ts';

/** The end of the chain at some time: whoever kept it can tell that nothing before it was changed since. */
export type AuditAnchor = { position: string; hash: string };

/** What is wrong with the log; `position` is the place in the chain, null for an entry that is not in it. */
export type AuditFinding = {
  kind: 'changed' | 'removed' | 'not_chained' | 'gap' | 'anchor_differs' | 'cut_off';
  position: string | null;
  entryId: string | null;
};

export type AuditVerdict = { entries: number; last: AuditAnchor; findings: AuditFinding[] };

const BATCH = 2_000;
/** More do not tell more. */
const MAX_FINDINGS = 100;
const START: AuditAnchor = { position: '0', hash: '' };

/**
 * Goes through the whole chain: finds entries that were changed, removed or put in beside the application. With an
 * anchor from before (`position:hash`), also a chain that was cut off or written anew.
 * Throws RequestError `invalid_value`.
 */
export async function verifyAudit(database: Database, anchorText: string | null): Promise<AuditVerdict> {
  const anchor = anchorText === null ? null : parseAnchor(anchorText);
  const findings: AuditFinding[] = [];
  const note = (kind: AuditFinding['kind'], position: string | null, entryId: string | null) => {
    if (findings.length < MAX_FINDINGS) findings.push({ kind, position, entryId });
  };
  let last = START;
  let entries = 0;
  for await (const link of chainOf(database)) {
    const { position, entryId, text, hash } = link;
    if (BigInt(position) !== BigInt(last.position) + 1n) note('gap', position, null);
    else if (text === null) note('removed', position, entryId);
    else if (hashAfter(last.hash, text) !== hash) note('changed', position, entryId);
    if (position === anchor?.position && hash !== anchor.hash) note('anchor_differs', position, entryId);
    last = { position, hash };
    entries += 1;
  }
  if (anchor !== null && BigInt(anchor.position) > BigInt(last.position))
    note('cut_off', last.position, null);
  for (const id of await notChained(database)) note('not_chained', null, id);
  return { entries, last, findings };
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
 * `hash` is the SHA-256 of the bytes of `previousHash` and of the text of `entry` as it stands in the line.
 */
export async function* exportAudit(database: Database): AsyncGenerator<string> {
  let previousHash = START.hash;
  for await (const { position, text, hash } of chainOf(database)) {
    yield `{"position":${position},"previousHash":"${previousHash}","hash":"${hash}","entry":${text ?? 'null'}}\n`;
    previousHash = hash;
  }
}

type Link = { position: string; entryId: string; hash: string; text: string | null };

async function* chainOf(database: Database): AsyncGenerator<Link> {
  let after = START.position;
  for (let isMore = true; isMore; ) {
    const links = await query<Link>(
      database,
      `select at_position as position, entry_id as "entryId", encode(chained_hash, 'hex') as hash, entry_text as text
         from audit_chain_after(cast(? as bigint), ?)`,
      [after, BATCH],
    );
    yield* links;
    after = links.at(-1)?.position ?? after;
    isMore = links.length === BATCH;
  }
}

async function notChained(database: Database): Promise<string[]> {
  const rows = await query<{ id: string }>(
    database,
    `select a.id from audit_log a where not exists (select from audit_chain c where c.entry_id = a.id)
      order by a.id limit ?`,
    [MAX_FINDINGS],
  );
  return rows.map(({ id }) => id);
}

function hashAfter(previousHash: string, text: string): string {
  return createHash('sha256').update(Buffer.from(previousHash, 'hex')).update(text).digest('hex');
}

function parseAnchor(text: string): AuditAnchor {
  const [, position, hash] = /^(\d{1,18}):([0-9a-f]{64})$/.exec(text.trim()) ?? [];
  if (position !== undefined && hash !== undefined) return { position, hash };
  throw invalidValue('An anchor is the position, a colon and the hash in hex, as the log has it.');
}
