import type { TSchema } from 'typebox';
import type { TLocalizedValidationError } from 'typebox/error';
import { firstNameIn, unknownMemberText, wrongValueText } from './wrong-value.ts';

/** `path` is that of the checked value; the problem names the whole path of the member. */
export function memberProblem(
  errors: readonly TLocalizedValidationError[],
  path = '',
  schema?: TSchema,
): Problem {
  const at = (error: TLocalizedValidationError) =>
    [path, ...error.instancePath.split('/').slice(1)].filter((part) => part !== '').join('/');
  const missing = errors.find((error) => error.keyword === 'required');
  const unknown = errors.find((error) => error.keyword === 'additionalProperties');
  const [first] = errors;
  // A wrong member says more than what is missing beside it.
  const wrong = errors.find(
    (error) => !['required', 'additionalProperties', 'boolean'].includes(error.keyword),
  );
  if (unknown !== undefined) {
    const name = firstNameIn(unknown, 'additionalProperties');
    return { param: joined(at(unknown), name), message: unknownMemberText(name, unknown, schema) };
  }
  if (wrong !== undefined) {
    const same = errors.filter((error) => error.instancePath === wrong.instancePath);
    return { param: at(wrong), message: `The parameter ${wrongValueText(same, schema)}.` };
  }
  if (missing !== undefined) {
    const name = firstNameIn(missing, 'requiredProperties');
    return { param: joined(at(missing), name), message: 'The parameter is missing.' };
  }
  return { param: first === undefined ? path : at(first), message: 'The parameter is not valid.' };
}

const MAX_DEPTH = 32;

/**
 * What cannot be stored and sent as it came: U+0000, half characters, nesting without end, and numbers that JavaScript
 * would change. The path of a value is made only when the value is wrong.
 */
export function storableProblem(value: unknown, depth = 0): Problem | null {
  if (typeof value === 'string') return textProblem(value);
  if (typeof value === 'number' && !isKept(value)) {
    return { param: '', message: 'The number is too large to be passed on exactly.' };
  }
  if (typeof value !== 'object' || value === null) return null;
  if (depth >= MAX_DEPTH) return { param: '', message: `Members may be nested ${MAX_DEPTH} levels deep.` };
  return Array.isArray(value) ? itemProblem(value, depth) : membersProblem(value, depth);
}

function itemProblem(items: readonly unknown[], depth: number): Problem | null {
  for (let index = 0; index < items.length; index += 1) {
    const problem = storableProblem(items[index], depth + 1);
    if (problem !== null) return inside(index, problem);
  }
  return null;
}

function membersProblem(members: object, depth: number): Problem | null {
  for (const name in members) {
    const problem = textProblem(name);
    if (problem !== null) return problem;
    const wrong = storableProblem((members as Record<string, unknown>)[name], depth + 1);
    if (wrong !== null) return inside(name, wrong);
  }
  return null;
}

function inside(name: string | number, { param, message }: Problem): Problem {
  return { param: param === '' ? String(name) : `${name}/${param}`, message };
}

function isKept(value: number): boolean {
  return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
}

function textProblem(text: string): Problem | null {
  if (text.isWellFormed() && !text.includes('\0')) return null;
  return { param: '', message: 'The text holds U+0000 or half of a surrogate pair.' };
}

/** `param` is the path of the member, e.g. `text/body`. */
export type Problem = { param: string; message: string };

export function joined(path: string, name: string | number): string {
  return path === '' ? String(name) : `${path}/${name}`;
}
