import { invalidValue, shown } from '../../platform/request-input.ts';

export const FILTER_LIMITS = { conditions: 10, chars: 500, depth: 10, values: 50 };

type Scalar = string | number | boolean | null;

type Condition = {
  isNegated: boolean;
  /** Members and positions, from `data` on. */
  steps: readonly (string | number)[];
  /** Null: the value only has to exist. */
  values: readonly Scalar[] | null;
};

export const CONDITION_FORMS =
  '$.path equals VALUE, $.path in [VALUE, …] or $.path exists, with "not" before it to negate';

/**
 * All conditions must hold for an event to be sent; they are returned without the space around them. Throws RequestError `invalid_value`,
 * which names the condition and what is wrong with it.
 */
export function checkFilter(texts: readonly string[]): string[] {
  const conditions = texts.map((text) => text.trim()).filter((text) => text !== '');
  if (conditions.length === 0 || conditions.length > FILTER_LIMITS.conditions)
    throw invalidValue(`A filter has 1 to ${FILTER_LIMITS.conditions} conditions, not ${conditions.length}.`);
  for (const text of conditions) parseCondition(text);
  return conditions;
}

export type EventFilter = (data: unknown) => boolean;

const compiled = new Map<string, EventFilter>();
const MOST_COMPILED = 1_000;

export function filterOf(texts: readonly string[]): EventFilter {
  const key = texts.join('\n');
  const known = compiled.get(key);
  if (known !== undefined) return known;
  const conditions = texts.map(parseCondition);
  const filter: EventFilter = (data) => conditions.every((condition) => holds(condition, data));
  if (compiled.size >= MOST_COMPILED) compiled.clear();
  compiled.set(key, filter);
  return filter;
}

function holds({ isNegated, steps, values }: Condition, data: unknown): boolean {
  const found = valueAt(data, steps);
  const fits = found !== undefined && (values === null || values.some((value) => value === found));
  return fits !== isNegated;
}

/** Undefined: there is none. */
function valueAt(data: unknown, steps: readonly (string | number)[]): unknown {
  let at = data;
  for (const step of steps) {
    if (typeof at !== 'object' || at === null) return undefined;
    if ((typeof step === 'number') !== Array.isArray(at) || !Object.hasOwn(at, step)) return undefined;
    at = (at as Record<string | number, unknown>)[step];
  }
  return at;
}

const STEP = /\.([A-Za-z_][A-Za-z0-9_-]*)|\[(\d{1,4})\]|\[("(?:[^"\\]|\\.)*")\]/y;

/** Throws RequestError `invalid_value`. */
function parseCondition(text: string): Condition {
  const wrong = (problem: string) => invalidValue(`The condition ${shown(text)} ${problem}.`);
  if (text.length > FILTER_LIMITS.chars) throw wrong(`is longer than ${FILTER_LIMITS.chars} characters`);
  const [start = '', negation] = /^(not\s+)?\$/.exec(text) ?? [];
  if (start === '') throw wrong(`must begin with "$" or "not $": write ${CONDITION_FORMS}`);
  const { steps, end } = readSteps(text, start.length, wrong);
  if (steps.length === 0) throw wrong('names no member of data, such as $.text.body');
  if (steps.length > FILTER_LIMITS.depth) throw wrong(`goes deeper than ${FILTER_LIMITS.depth} steps`);
  const [, operator = '', operand = ''] = /^\s+(\w+)\s*([\s\S]*)$/.exec(text.slice(end)) ?? [];
  return { isNegated: negation !== undefined, steps, values: valuesOf(operator, operand.trim(), wrong) };
}

function readSteps(text: string, from: number, wrong: (problem: string) => Error) {
  const steps: (string | number)[] = [];
  STEP.lastIndex = from;
  let end = from;
  for (let step = STEP.exec(text); step !== null; step = STEP.exec(text)) {
    const [, name, position, quoted] = step;
    end = STEP.lastIndex;
    if (position !== undefined) steps.push(Number(position));
    else steps.push(name ?? String(parsed(quoted ?? '', wrong)));
  }
  if (end < text.length && !/\s/.test(text.charAt(end)))
    throw wrong(`has no valid path at ${shown(text.slice(end, end + 20))}`);
  return { steps, end };
}

function valuesOf(
  operator: string,
  operand: string,
  wrong: (problem: string) => Error,
): readonly Scalar[] | null {
  switch (operator) {
    case 'exists':
      if (operand !== '') throw wrong('has something after "exists"');
      return null;
    case 'equals':
      return [scalar(parsed(operand, wrong), wrong)];
    case 'in': {
      const list = parsed(operand, wrong);
      if (!Array.isArray(list) || list.length === 0 || list.length > FILTER_LIMITS.values)
        throw wrong(`needs a list of 1 to ${FILTER_LIMITS.values} values after "in", such as ["a", "b"]`);
      return list.map((value) => scalar(value, wrong));
    }
    default:
      throw wrong(`has no operator: write ${CONDITION_FORMS}`);
  }
}

function scalar(value: unknown, wrong: (problem: string) => Error): Scalar {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value;
  // A longer number would be compared with digits missing.
  if (typeof value === 'number' && (!Number.isInteger(value) || Number.isSafeInteger(value))) return value;
  throw wrong('compares with something else than a text, a number, true, false or null');
}

function parsed(json: string, wrong: (problem: string) => Error): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw wrong('has a value that is not JSON: texts are written in double quotes');
  }
}
