import type { Audited } from '../../../platform/audit/audit.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { RequestError } from '../../../platform/request-input.ts';
import { addRecipients } from './broadcast-lines.ts';
import type { BroadcastIds } from './broadcast-store.ts';
import {
  type FileRecipient,
  type LineProblem,
  pagesOfRecipients,
  type RecipientFile,
  readRecipientFile,
} from './recipient-file.ts';

/** So many lines at once: those of a larger file are added by several, or by the API. */
const MOST_LINES = 10_000;

/** What became of a file; `head` and the lines of `problems` make a file of what is still to be added. */
export type AddedFile = Pick<RecipientFile, 'problems' | 'head'> & { added: number; duplicates: number };

/**
 * Adds the recipients of a file, a page after the other: a line that is wrong is named and keeps out no other, and the same file may be added
 * again. Throws RequestError: `invalid_value` for a file that cannot be read, and as `addRecipients`, unless a page was added before.
 */
export async function addRecipientFile(
  tools: { database: Database } & Audited,
  ids: BroadcastIds,
  text: string,
): Promise<AddedFile> {
  const { recipients, problems, head } = readRecipientFile(text, MOST_LINES);
  const file: AddedFile = { problems, head, added: 0, duplicates: 0 };
  for (const [at, page] of pagesOfRecipients(recipients).entries()) {
    try {
      await addPage(tools, ids, page, file);
    } catch (error) {
      if (at === 0 || !(error instanceof RequestError)) throw error;
      const rest = recipients.slice(recipients.indexOf(page[0] as FileRecipient));
      problems.push(...rest.map(({ line, text: written }) => problemOf(line, written, error.message)));
      break;
    }
  }
  problems.sort((a, b) => a.line - b.line);
  return file;
}

async function addPage(
  tools: { database: Database } & Audited,
  ids: BroadcastIds,
  page: readonly FileRecipient[],
  file: AddedFile,
): Promise<void> {
  const given = page.map((one) => one.given);
  const results = await addRecipients(tools, ids, given);
  for (const [at, { line, text }] of page.entries()) {
    const result = results[at];
    if (result?.result === 'invalid') file.problems.push(problemOf(line, text, result.message));
    else if (result?.result === 'added') file.added += 1;
    else file.duplicates += 1;
  }
}

function problemOf(line: number, text: string, message: string): LineProblem {
  return { line, text, message };
}
