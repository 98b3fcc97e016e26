type Json = Readonly<Record<string, unknown>>;

type ObjectSchema = { properties: Readonly<Record<string, Json>>; required?: readonly string[] };

/** What the document says of a parameter of path or query. */
export type ParameterDocs = { description: unknown; example: unknown };

/** The parameters of these schemas by name, as their members describe them. */
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
 * when they have an example of their own. Throws for a schema that has none and needs one.
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
