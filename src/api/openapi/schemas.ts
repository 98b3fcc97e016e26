type Json = Record<string, unknown>;

export type Components = Map<string, Json>;

const NAME = /^[A-Z][A-Za-z0-9]*$/;

/** Members whose values are schemas by name, which must not be taken for schemas themselves. */
const NAMED_SCHEMAS = new Set(['properties', '$defs']);

const VALUES = new Set(['enum', 'const', 'default', 'example', 'required']);

/**
 * A schema as the document shows it: parts with a `title` become components of that name and are referred to.
 * Throws when two different schemas have one title.
 */
export function documentSchema(schema: unknown, components: Components): Json {
  const shown = shownMembers(schema as Json, components);
  const { title } = shown;
  if (typeof title !== 'string' || !NAME.test(title)) return shown;
  const known = components.get(title);
  if (known !== undefined && JSON.stringify(known) !== JSON.stringify(shown)) {
    throw new Error(`two schemas have the title ${title}`);
  }
  components.set(title, shown);
  return { $ref: `#/components/schemas/${title}` };
}

function shownMembers(schema: Json, components: Components): Json {
  const shown: Json = {};
  for (const [name, value] of Object.entries(schema)) {
    // Examples of members are shown in the examples of whole responses (exampleOf).
    if (name.startsWith('~') || name === 'examples') continue;
    if (name === 'patternProperties') {
      shown.additionalProperties = documentSchema(Object.values(value as Json)[0], components);
    } else shown[name] = shownMember(name, value, components);
  }
  if (isTextEnum(shown)) shown.type = 'string';
  return shown;
}

function shownMember(name: string, value: unknown, components: Components): unknown {
  if (typeof value !== 'object' || value === null || VALUES.has(name)) return value;
  if (Array.isArray(value)) return value.map((one) => shownMember('', one, components));
  if (!NAMED_SCHEMAS.has(name)) return documentSchema(value, components);
  const schemas = Object.entries(value).map(([key, one]) => [key, documentSchema(one, components)]);
  return Object.fromEntries(schemas);
}

/** Generators want the type of an enumeration, validators do not need it. */
function isTextEnum({ type, enum: values }: Json): boolean {
  return type === undefined && Array.isArray(values) && values.every((value) => typeof value === 'string');
}

type ObjectSchema = { properties: Readonly<Record<string, Json>>; required?: readonly string[] };

export type ParameterDocs = { description: unknown; example: unknown };

export function parameterDocs(schemas: readonly unknown[]): Record<string, ParameterDocs> {
  const members = schemas.flatMap((schema) =>
    Object.entries(schema === undefined ? {} : (schema as ObjectSchema).properties),
  );
  return Object.fromEntries(
    members.map(([name, { description, examples }]) => [
      name,
      { description, example: (examples as unknown[] | undefined)?.[0] },
    ]),
  );
}

/**
 * An example of what a schema describes, made of the examples of its members. Members that may be missing are in it
 * when they have their own example. Throws for a schema that has none and needs one.
 */
export function exampleOf(schema: unknown): unknown {
  const { examples, type, items, ...rest } = schema as Json;
  if (Array.isArray(examples)) return examples[0];
  if ('const' in rest) return rest.const;
  if (Array.isArray(rest.enum)) return rest.enum[0];
  if (type === 'object' && 'properties' in rest) return memberExamples(rest as ObjectSchema);
  if (type === 'array') return [exampleOf(items)];
  if (type === 'boolean') return false;
  if (type === 'integer') return 0;
  throw new Error(`a part of an answer has no example: ${JSON.stringify(schema)}`);
}

function memberExamples({ properties, required = [] }: ObjectSchema): Record<string, unknown> {
  const shown = Object.entries(properties).filter(
    ([name, member]) => required.includes(name) || 'examples' in member,
  );
  return Object.fromEntries(shown.map(([name, member]) => [name, exampleOf(member)]));
}
