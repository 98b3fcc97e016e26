import type { TLocalizedValidationError } from 'typebox/error';
import { joined, type Problem } from './kinds/problem.ts';

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
