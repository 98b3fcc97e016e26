export type SchemaRow = { path: string; type: string; isRequired: boolean; description: string };

type Schema = {
  type?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  format?: string;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
};

const MAX_DEPTH = 6;

/** The members of a schema one by one, for a table: `data.items[].quantity`. */
export function schemaRows(schema: unknown, prefix = '', depth = 0): SchemaRow[] {
  const { properties = {}, required = [] } = schema as Schema;
  if (depth > MAX_DEPTH) return [];
  return Object.entries(properties).flatMap(([name, member]) => {
    const path = `${prefix}${name}`;
    const row = {
      path,
      type: typeOf(member),
      isRequired: required.includes(name),
      description: member.description ?? '',
    };
    const inner = member.type === 'array' ? member.items : member;
    return [row, ...schemaRows(inner ?? {}, member.type === 'array' ? `${path}[].` : `${path}.`, depth + 1)];
  });
}

function typeOf(schema: Schema): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.anyOf !== undefined) return schema.anyOf.map(typeOf).join(' or ');
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(' or ');
  if (schema.type === 'array') return `array of ${typeOf(schema.items ?? {})}`;
  if (schema.format !== undefined) return `${schema.type ?? 'string'} (${schema.format})`;
  return schema.type ?? 'anything';
}
