import type { TLocalizedValidationError } from 'typebox/error';

/** The first thing that is wrong, with the whole path of the member; `path` is that of the checked value. */
export function memberProblem(errors: readonly TLocalizedValidationError[], path = ''): Problem {
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
    const [name] = namesIn(unknown.params, 'additionalProperties');
    return { param: joined(at(unknown), name), message: 'There is no such parameter.' };
  }
  if (wrong !== undefined) {
    const whole = errors.findLast((error) => error.instancePath === wrong.instancePath) ?? wrong;
    return { param: at(wrong), message: `The parameter ${textOf(whole)}.` };
  }
  if (missing !== undefined) {
    const [name] = namesIn(missing.params, 'requiredProperties');
    return { param: joined(at(missing), name), message: 'The parameter is missing.' };
  }
  return { param: first === undefined ? path : at(first), message: 'The parameter is not valid.' };
}

const MAX_NAME_CHARS = 100;

function namesIn(params: object, member: string): [string] {
  const names: unknown = (params as Record<string, unknown>)[member];
  const name: unknown = Array.isArray(names) ? names[0] : undefined;
  return [typeof name === 'string' ? name.slice(0, MAX_NAME_CHARS) : ''];
}

/** What the library leaves vague is said in full. */
function textOf({ keyword, params, message }: TLocalizedValidationError): string {
  const values = params as { allowedValue?: unknown; allowedValues?: unknown[] };
  if (keyword === 'const') return `must be ${JSON.stringify(values.allowedValue)}`;
  if (keyword === 'enum') return `must be one of ${(values.allowedValues ?? []).join(', ')}`;
  if (keyword === 'anyOf') return 'has none of the forms that are allowed';
  return message;
}

const MAX_DEPTH = 32;

/** What neither the database nor upstream can take: U+0000, half characters, and nesting without end. */
export function storableProblem(value: unknown, path = '', depth = 0): Problem | null {
  if (typeof value === 'string') return textProblem(value, path);
  if (typeof value !== 'object' || value === null) return null;
  if (depth >= MAX_DEPTH) {
    return { param: path, message: `Members may be nested ${MAX_DEPTH} levels deep.` };
  }
  for (const [name, member] of Object.entries(value)) {
    const wrongName = textProblem(name, path);
    if (wrongName !== null) return wrongName;
    const problem = storableProblem(member, joined(path, name), depth + 1);
    if (problem !== null) return problem;
  }
  return null;
}

function textProblem(text: string, path: string): Problem | null {
  if (text.isWellFormed() && !text.includes('\0')) return null;
  return { param: path, message: 'The text holds U+0000 or half of a surrogate pair.' };
}

/** What is wrong with a request: `param` is the path of the member, e.g. `text/body`. */
export type Problem = { param: string; message: string };

/** Exactly one of the two members has to be there; `path` is the object's own. */
export function exactlyOne(
  value: Readonly<Record<string, unknown>>,
  names: readonly [string, string],
  path: string,
): Problem | null {
  const given = names.filter((name) => value[name] !== undefined);
  if (given.length === 1) return null;
  const [first, second] = names;
  if (given.length === 0) return { param: joined(path, first), message: `Give ${first} or ${second}.` };
  return { param: joined(path, second), message: `Give ${first} or ${second}, not both.` };
}

/** Of several values of one kind none may come twice. */
export function noneTwice(values: readonly (readonly [param: string, value: string])[]): Problem | null {
  const seen = new Set<string>();
  for (const [param, value] of values) {
    if (seen.has(value)) return { param, message: 'The value is used twice.' };
    seen.add(value);
  }
  return null;
}

/** The path of a member. */
export function joined(path: string, name: string | number): string {
  return path === '' ? String(name) : `${path}/${name}`;
}

/** The first problem of several checks. */
export function firstProblem(...checks: readonly (() => Problem | null)[]): Problem | null {
  for (const check of checks) {
    const problem = check();
    if (problem !== null) return problem;
  }
  return null;
}
