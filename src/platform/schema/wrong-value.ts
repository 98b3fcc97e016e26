import type { TSchema } from 'typebox';

/** One error of the validator; its library and the framework type it differently. */
export type SchemaError = {
  keyword: string;
  instancePath: string;
  schemaPath: string;
  params: object;
  message?: string | undefined;
};

const MAX_NAME_CHARS = 100;

/** The first member that an error lists; empty: none. */
export function firstNameIn(
  { params }: SchemaError,
  list: 'additionalProperties' | 'requiredProperties',
): string {
  const names = (params as Readonly<Record<string, unknown>>)[list];
  const name: unknown = Array.isArray(names) ? names[0] : undefined;
  return typeof name === 'string' ? name.slice(0, MAX_NAME_CHARS) : '';
}

/**
 * What is wrong with a value, as the end of "The parameter …". What the library leaves vague is said in full: the values
 * that are allowed, and a format by an example of `schema`, never by a regular expression.
 */
export function wrongValueText(errors: readonly SchemaError[], schema?: TSchema): string {
  const last = errors.at(-1);
  if (last === undefined) return 'is not valid';
  const { keyword, message = 'is not valid' } = last;
  const params = last.params as { allowedValue?: unknown; allowedValues?: unknown[]; type?: unknown };
  if (keyword === 'const') return `must be ${JSON.stringify(params.allowedValue)}`;
  if (keyword === 'enum') return `must be one of ${(params.allowedValues ?? []).join(', ')}`;
  if (keyword === 'type') return `must be ${withArticle(String(params.type))}`;
  if (keyword === 'anyOf') return alternativesText(errors, schema);
  if (keyword === 'pattern' || keyword === 'format') return formatText(errors, schema);
  return message;
}

function alternativesText(errors: readonly SchemaError[], schema: TSchema | undefined): string {
  const members = errors.flatMap(({ keyword, params }) => {
    const { allowedValue, allowedValues = [] } = params as {
      allowedValue?: unknown;
      allowedValues?: unknown[];
    };
    return keyword === 'const' ? [allowedValue] : keyword === 'enum' ? allowedValues : [];
  });
  if (members.length > 0) {
    const example = exampleAt(schema, errors.find(({ keyword }) => keyword === 'pattern')?.schemaPath);
    const other = example === undefined ? '' : `, or a text such as ${example}`;
    return `must be one of ${members.join(', ')}${other}`;
  }
  const types = errors.flatMap(({ keyword, params }) =>
    keyword === 'type' ? [withArticle(String((params as { type?: unknown }).type))] : [],
  );
  return types.length > 0 ? `must be ${types.join(' or ')}` : 'has none of the forms that are allowed';
}

function withArticle(type: string): string {
  if (type === 'null') return 'null';
  return `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`;
}

function formatText(errors: readonly SchemaError[], schema: TSchema | undefined): string {
  const isTime = errors.some(({ params }) => (params as { format?: unknown }).format === 'date-time');
  if (isTime) return 'must be an ISO 8601 time with time zone, such as 2026-11-19T00:00:00Z';
  const example = exampleAt(schema, errors.at(-1)?.schemaPath);
  return example === undefined
    ? 'does not have the format that is documented'
    : `must be a text such as ${example}`;
}

function exampleAt(schema: TSchema | undefined, pointer = ''): unknown {
  const { examples } = (subschemaAt(schema, pointer) ?? {}) as { examples?: unknown[] };
  return examples?.[0];
}

function subschemaAt(schema: TSchema | undefined, pointer: string): unknown {
  return pointer
    .split('/')
    .slice(1)
    .reduce<unknown>(
      (part, name) =>
        typeof part === 'object' && part !== null ? (part as Record<string, unknown>)[name] : undefined,
      schema,
    );
}

export function unknownMemberText(name: string, error: SchemaError, schema?: TSchema): string {
  const { properties } = (subschemaAt(schema, error.schemaPath) ?? {}) as { properties?: object };
  const meant = nearestName(name, Object.keys(properties ?? {}));
  return meant === null
    ? 'There is no such parameter.'
    : `There is no such parameter. Did you mean ${meant}?`;
}

const MOST_EDITS = 2;

/** The name that differs in its spelling only (`phone_number_id`) or in up to two letters. */
export function nearestName(given: string, names: readonly string[]): string | null {
  const plain = (name: string) => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  const distances = names.map((name) => ({ name, edits: editsBetween(plain(given), plain(name)) }));
  const [best] = distances.toSorted((a, b) => a.edits - b.edits);
  return best !== undefined && best.edits <= Math.min(MOST_EDITS, best.name.length / 3) ? best.name : null;
}

/** Levenshtein's distance. */
function editsBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [at, letter] of [...from].entries()) {
    const next = [at + 1];
    for (const [column, other] of [...to].entries()) {
      const replaced = (row[column] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
