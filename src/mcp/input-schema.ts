import { IDEMPOTENCY_KEY } from '../api/openapi/idempotency-key.ts';
import type { Operation } from '../api/operations/operation.ts';
import { IDEMPOTENCY_ARGUMENT } from './idempotency-argument.ts';
import type { Choices } from './tool-list.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

type ObjectForm = { properties: Readonly<Record<string, JsonSchema>>; required: readonly string[] };

/**
 * Members of path, query and body side by side, as schemas of the API describe them. A body of several forms becomes one object, because
 * models are given objects only.
 */
export function inputSchemaOf(operation: Operation, choices: Choices = {}): JsonSchema {
  const { params, query, body, requests = {}, idempotent = false } = operation;
  const forms = [params, query, body].map((schema) => formOf(plain(schema)));
  const properties = Object.assign({}, ...forms.map((form) => form.properties));
  for (const [name, values] of Object.entries(choices)) properties[name] = { type: 'string', enum: values };
  if (idempotent) {
    const { schema, description, example } = IDEMPOTENCY_KEY;
    properties[IDEMPOTENCY_ARGUMENT] = { ...schema, description, examples: [example] };
  }
  const required = forms.flatMap((form) => form.required);
  const isAllowed = (request: unknown) =>
    Object.entries(Object(request)).every(([name, value]) => choices[name]?.includes(String(value)) ?? true);
  const examples = Object.values(requests)
    .filter((request) => JSON.stringify(request) !== '{}')
    .filter(isAllowed);
  return {
    type: 'object',
    properties,
    ...(required.length > 0 && { required }),
    ...(!hasForms(plain(body)) && { additionalProperties: false }),
    ...(examples.length > 0 && { examples }),
  };
}

/** Without what the library of the schemas keeps in them for itself. */
function plain(schema: object | undefined): JsonSchema {
  return schema === undefined ? {} : JSON.parse(JSON.stringify(schema));
}

function hasForms(schema: JsonSchema): schema is { anyOf: JsonSchema[] } {
  return Array.isArray(schema.anyOf);
}

function formOf(schema: JsonSchema): ObjectForm {
  if (hasForms(schema)) return commonForm(schema.anyOf.map(formOf));
  const { properties = {}, required = [] } = schema as Partial<ObjectForm>;
  return { properties, required };
}

function commonForm(forms: readonly ObjectForm[]): ObjectForm {
  const names = new Set(forms.flatMap(({ properties }) => Object.keys(properties)));
  const properties = [...names].map((name) => {
    const variants = forms.map((form) => form.properties[name]).filter((each) => each !== undefined);
    return [name, commonSchema(variants)] as const;
  });
  const [first, ...others] = forms;
  const required = (first?.required ?? []).filter((name) =>
    others.every((form) => form.required.includes(name)),
  );
  return { properties: Object.fromEntries(properties), required };
}

/** A member that differs between forms keeps its type, and its constants as a list; the API checks the rest. */
function commonSchema(variants: readonly JsonSchema[]): JsonSchema {
  const distinct = [...new Set(variants.map((variant) => JSON.stringify(variant)))];
  const [first = {}] = variants;
  if (distinct.length === 1) return first;
  const constants = variants.flatMap((variant) => (variant.const === undefined ? [] : [variant.const]));
  const values = [...new Set(constants)];
  return { type: first.type, ...(values.length > 0 && { enum: values }) };
}
