import { renewVersions } from '../../engine/endpoint/store.ts';
import { type Audited, recordChange } from '../../platform/audit/audit.ts';
import { InvalidTargetError, parseTarget, type TargetLists } from '../../platform/http/outbound-url.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import { invalidValue } from '../../platform/request-input.ts';
import { knownWaba, saveWebhookTargets } from '../accounts/accounts.ts';

const MAX_ENTRIES = 100;

/** Two empty lists: anywhere that the installation allows. */
export async function webhookTargets(database: Database, wabaId: string): Promise<TargetLists> {
  const [row] = await query<TargetLists>(
    database,
    'select webhook_allow as allow, webhook_deny as deny from wabas where waba_id = :wabaId',
    { wabaId },
  );
  return row ?? { allow: [], deny: [] };
}

/**
 * The lists hold from the next attempt on, also for what waits, and for URLs that are stored. Throws RequestError: `invalid_value`,
 * `unknown_waba`.
 */
export async function limitWebhookTargets(
  { database, actor }: { database: Database } & Audited,
  wabaId: string,
  given: Partial<TargetLists>,
): Promise<TargetLists> {
  await knownWaba(database, wabaId);
  return await database.transaction(async (trx) => {
    const present = await webhookTargets(trx, wabaId);
    const lists = {
      allow: given.allow === undefined ? present.allow : checkEntries(given.allow),
      deny: given.deny === undefined ? present.deny : checkEntries(given.deny),
    };
    await saveWebhookTargets(trx, wabaId, lists);
    await renewVersions(trx, wabaId);
    const detail = { allow: lists.allow.join(', '), deny: lists.deny.join(', ') };
    const change = { wabaId, action: 'webhook_targets.changed', target: `WABA ${wabaId}`, detail };
    await recordChange(trx, actor, change);
    return lists;
  });
}

function checkEntries(texts: readonly string[]): string[] {
  const entries = [...new Set(texts.map((text) => text.trim().toLowerCase()).filter((text) => text !== ''))];
  if (entries.length > MAX_ENTRIES) throw invalidValue(`A list has at most ${MAX_ENTRIES} entries.`);
  try {
    for (const entry of entries) parseTarget(entry);
  } catch (error) {
    if (error instanceof InvalidTargetError) throw invalidValue(error.message);
    throw error;
  }
  return entries;
}
