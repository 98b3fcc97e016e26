import { invalidValue } from '../../../platform/request-input.ts';
import type { BodyParameters } from './broadcast-message.ts';
import { type CsvRow, readCsv } from './csv.ts';

/** What one recipient may have, in characters; `parameters`: how many. */
export const RECIPIENT_LIMITS = { to: 256, ref: 200, parameter: 1_024, parameters: 100 };

/** The name of a variable of a template. */
export const PARAMETER_NAME = /^[a-z0-9_]{1,100}$/;

/** A request takes so many, in so many bytes. */
export const RECIPIENTS_PAGE = { most: 1_000, bytes: 200 * 1024 };

export type GivenRecipient = { to: string; parameters?: BodyParameters; ref?: string };

/** A line by its number, from 1 as editors count, and as it was written. */
type Line = { line: number; text: string };

export type FileRecipient = Line & { given: GivenRecipient };

export type LineProblem = Line & { message: string };

/** `head`: the line with the names of the columns, as it was written. */
export type RecipientFile = { recipients: FileRecipient[]; problems: LineProblem[]; head: string | null };

const TO = 'to';
const REF = 'ref';
const MOST_COLUMNS = 2 + RECIPIENT_LIMITS.parameters;
const PLACE = /^[1-9]\d?$|^100$/;
/** The last is what stands for bytes that are no text. */
const UNSENDABLE = /[\p{Cc}\ufffd]/u;
/** A formula, or what a spreadsheet shows in its place when it has no result. */
const FORMULA = /^(?:=|#(?:REF!|N\/A|VALUE!|NAME\?|DIV\/0!|NUM!|NULL!))/;

/**
 * Recipients of a broadcast as a spreadsheet saves them: the first line names the columns, `to`, `ref` and the variables of the body of the template
 * by their places (1, 2, …) or names; or one number to a line. A line that is wrong is named, the others count. Throws RequestError `invalid_value`
 * where the file as a whole cannot be read.
 */
export function readRecipientFile(text: string, mostLines: number): RecipientFile {
  const rows = readCsv(text.replace(/^\ufeff/, ''));
  const [first] = rows;
  if (first === undefined) throw wrong('There is no recipient.');
  const names = first.cells.map((cell) => cell.trim().toLowerCase());
  const isHead = names.includes(TO);
  const several = rows.find(({ cells }) => cells.length > 1);
  if (!isHead && several !== undefined) {
    throw wrong(
      `Line ${several.line} has several columns: the first line must name them, such as to,ref,1,2.`,
    );
  }
  const lines = isHead ? rows.slice(1) : rows;
  const surplus = lines[mostLines];
  if (surplus !== undefined) {
    throw wrong(
      `At most ${mostLines.toLocaleString('en-US')} recipients at once: put those from line ${surplus.line} on into another file.`,
    );
  }
  const columns = isHead ? columnsOf(names) : [TO];
  const found: RecipientFile = { recipients: [], problems: [], head: isHead ? first.text : null };
  for (const row of lines) {
    const { line, text: written } = row;
    const given = recipientOf(row, columns);
    if (typeof given === 'string') found.problems.push({ line, text: written, message: given });
    else found.recipients.push({ line, text: written, given });
  }
  return found;
}

function wrong(message: string): Error {
  return invalidValue(message, 'recipients');
}

function columnsOf(names: readonly string[]): readonly string[] {
  if (names.length > MOST_COLUMNS)
    throw wrong(`There are ${names.length} columns, more than ${MOST_COLUMNS}.`);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw wrong(`Two columns are named ${JSON.stringify(twice)}.`);
  const variables = names.filter((name) => name !== TO && name !== REF);
  const bad = variables.find((name) => !PARAMETER_NAME.test(name));
  if (bad !== undefined) {
    throw wrong(
      `The column ${JSON.stringify(bad.slice(0, 80))} is not known: columns are to, ref, and variables by their places (1, 2, …) or names.`,
    );
  }
  const places = variables.filter((name) => PLACE.test(name)).map(Number);
  if (places.length > 0 && places.length < variables.length)
    throw wrong('Variables are columns by their places or by their names, not both.');
  const missing = places.findIndex((_, at) => !places.includes(at + 1));
  if (missing !== -1) throw wrong(`The column ${missing + 1} is missing: variables are counted from 1.`);
  return names;
}

/** A text says what is wrong. */
function recipientOf({ cells }: CsvRow, columns: readonly string[]): GivenRecipient | string {
  if (cells.length > columns.length)
    return `There are ${cells.length} cells, but ${columns.length} columns are named.`;
  const given = new Map(columns.map((name, at) => [name, (cells[at] ?? '').trim()]));
  for (const [name, cell] of given) {
    const problem = cellProblem(name, cell);
    if (problem !== null) return problem;
  }
  const to = given.get(TO) ?? '';
  if (to === '') return 'The cell of "to" is empty.';
  const ref = given.get(REF) ?? '';
  const parameters = parametersOf(columns, given);
  if (typeof parameters === 'string') return parameters;
  return { to, ...(ref !== '' && { ref }), ...(parameters !== null && { parameters }) };
}

function cellProblem(name: string, cell: string): string | null {
  const most =
    name === TO ? RECIPIENT_LIMITS.to : name === REF ? RECIPIENT_LIMITS.ref : RECIPIENT_LIMITS.parameter;
  if (cell.length > most) return `The cell of "${name}" has more than ${most} characters.`;
  if (UNSENDABLE.test(cell))
    return `The cell of "${name}" has a line break, a tab or another character that cannot be sent.`;
  if (FORMULA.test(cell)) return `The cell of "${name}" is a formula: write its value.`;
  return null;
}

/** Null: the message has those of the broadcast. */
function parametersOf(
  columns: readonly string[],
  given: ReadonlyMap<string, string>,
): BodyParameters | null | string {
  const names = columns.filter((name) => name !== TO && name !== REF);
  const empty = names.filter((name) => given.get(name) === '');
  if (empty.length === names.length) return null;
  if (empty.length > 0) return `The cell of "${empty[0]}" is empty.`;
  const cellOf = (name: string) => given.get(name) ?? '';
  if (names.some((name) => !PLACE.test(name)))
    return Object.fromEntries(names.map((name) => [name, cellOf(name)]));
  return names.toSorted((a, b) => Number(a) - Number(b)).map(cellOf);
}

/** Recipients as requests take them. */
export function pagesOfRecipients(recipients: readonly FileRecipient[]): FileRecipient[][] {
  const pages: FileRecipient[][] = [];
  let room = 0;
  for (const recipient of recipients) {
    const bytes = Buffer.byteLength(JSON.stringify(recipient.given));
    const page = pages.at(-1);
    if (page === undefined || page.length >= RECIPIENTS_PAGE.most || bytes > room) {
      pages.push([recipient]);
      room = RECIPIENTS_PAGE.bytes - bytes;
    } else {
      page.push(recipient);
      room -= bytes;
    }
  }
  return pages;
}
