import { followed, type Json, type OpenApiDocument } from '../../test/support/openapi-document.ts';

type Schema = {
  $ref?: string;
  type?: string;
  const?: unknown;
  enum?: unknown[];
  format?: string;
  description?: string;
  default?: unknown;
  title?: string;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  maxItems?: number;
};

/** A row of the table of a schema: member, type, whether it is always there, meaning. */
type SchemaRow = [path: string, type: string, required: string, description: string];

const MAX_DEPTH = 4;

/** The members of an object and of the objects within it, in the order of the document. */
export function schemaRows(document: OpenApiDocument, schema: unknown, prefix = '', depth = 0): SchemaRow[] {
  const { properties = {}, required = [], anyOf } = resolve(document, schema);
  if (depth > MAX_DEPTH) return [];
  const own = Object.entries(properties).flatMap(([name, given]) => {
    const member = resolve(document, given);
    const path = `${prefix}${name}`;
    const row: SchemaRow = [
      `\`${path}\``,
      typeOf(document, given),
      required.includes(name) ? 'yes' : '',
      [member.description ?? '', limitsOf(member)].filter((text) => text !== '').join(' '),
    ];
    const inner = innerOf(document, member, path);
    return [row, ...(inner === null ? [] : schemaRows(document, inner.schema, inner.prefix, depth + 1))];
  });
  // `null or an object` has the members of the object; several objects are told apart by their type alone.
  const objects = (anyOf ?? []).filter((one) => resolve(document, one).properties !== undefined);
  return [...own, ...(objects.length === 1 ? schemaRows(document, objects[0], prefix, depth) : [])];
}

/** The forms of a schema that is one of several, with their names; the schema itself when it is only one. */
export function formsOf(document: OpenApiDocument, schema: unknown): { name: string; schema: Json }[] {
  const whole = resolve(document, schema);
  const forms = (whole.anyOf ?? []).filter((one) => resolve(document, one).properties !== undefined);
  if (forms.length < 2) return [{ name: '', schema: whole as Json }];
  return forms.map((form, index) => ({
    name: resolve(document, form).title ?? form.$ref?.split('/').at(-1) ?? `form ${index + 1}`,
    schema: form as Json,
  }));
}

function innerOf(document: OpenApiDocument, member: Schema, path: string) {
  if (member.type !== 'array') return { schema: member, prefix: `${path}.` };
  return member.items === undefined
    ? null
    : { schema: resolve(document, member.items), prefix: `${path}[].` };
}

function resolve(document: OpenApiDocument, schema: unknown): Schema {
  return followed(document, schema as Schema & { $ref: string }) as Schema;
}

/** The type in words. */
function typeOf(document: OpenApiDocument, given: Schema): string {
  const schema = resolve(document, given);
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum !== undefined)
    return schema.enum.map((value) => `\`${JSON.stringify(value)}\``).join(' or ');
  if (schema.anyOf !== undefined) {
    return [...new Set(schema.anyOf.map((one) => typeOf(document, one)))].join(' or ');
  }
  if (schema.type === 'array') return `array of ${typeOf(document, schema.items ?? {})}`;
  if (schema.format !== undefined) return `${schema.type ?? 'string'} (${schema.format})`;
  return schema.type ?? 'any';
}

function limitsOf({ minimum, maximum, maxLength, maxItems, default: preset }: Schema): string {
  const limits = [
    minimum !== undefined && maximum !== undefined ? `${minimum} to ${maximum}.` : '',
    minimum !== undefined && maximum === undefined ? `At least ${minimum}.` : '',
    minimum === undefined && maximum !== undefined ? `At most ${maximum}.` : '',
    maxLength === undefined ? '' : `Up to ${maxLength} characters.`,
    maxItems === undefined ? '' : `Up to ${maxItems}.`,
    preset === undefined ? '' : `Default: \`${JSON.stringify(preset)}\`.`,
  ];
  return limits.filter((text) => text !== '').join(' ');
}
