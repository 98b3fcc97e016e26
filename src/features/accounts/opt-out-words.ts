import { lockIntake } from '../../engine/inbox/intake-lock.ts';
import { shardOf } from '../../engine/inbox/shards.ts';
import { type Audited, recordChange } from '../../platform/audit/audit.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { execute, queryOne } from '../../platform/postgres/sql.ts';
import { checkingMember, checkName, invalidValue, shown } from '../../platform/request-input.ts';
import { knownWaba } from './accounts.ts';

export const MOST_WORDS = 20;

/** What a customer writes, alone in a message, to stop or resume marketing. */
export type OptOutWords = { optOutWords: string[]; optInWords: string[] };

/** By the word as `foldWord` makes it. */
export type WordMeanings = ReadonlyMap<string, 'stop' | 'resume'>;

/** Without spaces at its ends and without a difference between large and small letters; by Unicode, as "ß" and "SS" are the same. */
export function foldWord(text: string): string {
  return text.normalize('NFC').trim().toUpperCase().toLowerCase().normalize('NFC');
}

/** Null: the WABA has no words, as most. */
export function meaningsOf({ optOutWords, optInWords }: OptOutWords): WordMeanings | null {
  if (optOutWords.length + optInWords.length === 0) return null;
  return new Map([
    ...optInWords.map((word) => [foldWord(word), 'resume'] as const),
    ...optOutWords.map((word) => [foldWord(word), 'stop'] as const),
  ]);
}

const WORDS = 'select opt_out_words as "optOutWords", opt_in_words as "optInWords" from wabas';

/** Throws RequestError `unknown_waba`. */
export async function optOutWordsOf(database: Database, wabaId: string): Promise<OptOutWords> {
  await knownWaba(database, wabaId);
  const words = await queryOne<OptOutWords>(database, `${WORDS} where waba_id = :wabaId`, { wabaId });
  return words ?? { optOutWords: [], optInWords: [] };
}

/** A list that is left out stays. Messages count from then on. Throws RequestError: `invalid_value`, `unknown_waba`. */
export async function setOptOutWords(
  { database, actor }: { database: Database } & Audited,
  wabaId: string,
  given: Partial<OptOutWords>,
): Promise<OptOutWords> {
  await knownWaba(database, wabaId);
  return await database.transaction(async (trx) => {
    // Intake remembers them with the numbers of the WABA.
    await lockIntake(trx, shardOf(wabaId));
    const before = await optOutWordsOf(trx, wabaId);
    const words: OptOutWords = {
      optOutWords: await checkWords('optOutWords', given.optOutWords ?? before.optOutWords),
      optInWords: await checkWords('optInWords', given.optInWords ?? before.optInWords),
    };
    const stops = new Set(words.optOutWords.map(foldWord));
    const both = words.optInWords.find((word) => stops.has(foldWord(word)));
    if (both !== undefined) {
      throw invalidValue(`The word ${shown(both)} cannot mean both.`, 'optInWords');
    }
    await execute(
      trx,
      'update wabas set opt_out_words = :optOutWords, opt_in_words = :optInWords where waba_id = :wabaId',
      { wabaId, ...words },
    );
    const detail = { optOutWords: words.optOutWords.join(', '), optInWords: words.optInWords.join(', ') };
    await recordChange(trx, actor, {
      wabaId,
      action: 'opt_out_words.set',
      target: `WABA ${wabaId}`,
      detail,
    });
    return words;
  });
}

/** Trimmed, each once; lines of a form may be empty. */
async function checkWords(param: keyof OptOutWords, given: readonly string[]): Promise<string[]> {
  return await checkingMember(param, () => {
    const words = given.filter((word) => word.trim() !== '').map((word) => checkName('A word', word));
    const distinct = [...new Map(words.map((word) => [foldWord(word), word])).values()];
    if (distinct.length > MOST_WORDS) throw invalidValue(`There can be at most ${MOST_WORDS} words.`);
    return distinct;
  });
}
