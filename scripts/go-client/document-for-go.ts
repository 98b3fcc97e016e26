import type { OpenApiDocument } from '../../test/support/openapi-document.ts';

type Schema = {
  $ref?: string;
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  additionalProperties?: boolean | Schema;
  enum?: string[];
  const?: unknown;
  description?: string;
  title?: string;
  [member: string]: unknown;
};

type Schemas = Record<string, Schema>;
type Content = Record<string, { schema: Schema }>;
type Parameter = { schema: Schema };
type Operation = {
  operationId: string;
  description?: string;
  parameters?: (Parameter | { $ref: string })[];
  requestBody?: { required?: boolean; content: Content };
  responses: Record<string, { content: Content }>;
};

/** What is written by hand, because it is no JSON or its type is of Go's own kind. */
export const BY_HAND = {
  operations: ['uploadMedia', 'uploadTemplateMedia', 'streamEvents', 'exportCustomer', 'getTenantUsageFile'],
  schemas: ['Error', 'MessageToSend', 'SendNewType', 'SendInteractiveNewType'],
};

/** The schemas of a document that another one has: both clients are one package. Throws when they differ. */
export function sharedSchemas(document: OpenApiDocument, other: OpenApiDocument): string[] {
  const [schemas, others] = [document.components.schemas, other.components.schemas] as [Schemas, Schemas];
  return Object.keys(schemas).filter((name) => {
    if (others[name] === undefined) return false;
    if (JSON.stringify(others[name]) === JSON.stringify(schemas[name])) return true;
    throw new Error(`the schema ${name} is another one in the platform API`);
  });
}

/** Upstream's own objects, whose other members are kept as they came. */
const OPEN = new Set(['InboundMessage', 'UpstreamStatus', 'CustomerContact']);
const CONSTANT = 'x-constant';

/**
 * The document as the generator for Go needs it: each object has a name, texts are strings whatever their values (new
 * ones come with any release), upstream's objects are kept as bytes, and a change can set null.
 */
export function documentForGo(given: OpenApiDocument): OpenApiDocument {
  const document = structuredClone(given) as OpenApiDocument & Record<string, unknown>;
  document.webhooks = {};
  delete document.components.responses;
  const schemas = document.components.schemas as Schemas;
  const shared = (document.components.parameters ?? {}) as unknown as Record<string, Parameter>;
  delete document.components.parameters;
  for (const name of BY_HAND.schemas) delete schemas[name];
  schemas.MessageToSend = { 'x-go-type': 'MessageToSend' };
  for (const [name, schema] of Object.entries(schemas)) {
    if (name !== 'ErrorCode') schemas[name] = simplified(schema, name, schemas);
    if (OPEN.has(name)) Object.assign(schemas[name] ?? {}, { additionalProperties: BYTES });
  }
  for (const methods of Object.values(document.paths)) {
    for (const [method, value] of Object.entries(methods)) {
      const operation = value as unknown as Operation;
      if (BY_HAND.operations.includes(operation.operationId)) delete methods[method];
      else changeOperation(operation, schemas, shared);
    }
  }
  // A change says null where it takes the default again, and nothing where it changes nothing.
  const changes = ['WebhookEndpointChange', 'TenantPolicyInput', 'BrandInput'].map((name) => schemas[name]);
  for (const [name, property] of changes.flatMap((schema) => Object.entries(schema?.properties ?? {}))) {
    const [type = '', isNullable] = Array.isArray(property.type) ? property.type : [];
    if (isNullable === undefined || GO_TYPES[type] === undefined || name === 'customHeaders') continue;
    const goType = type === 'array' ? `[]${GO_TYPES[String(property.items?.type)]}` : GO_TYPES[type];
    Object.assign(property, { 'x-go-type': `Nullable[${goType}]`, 'x-go-type-skip-optional-pointer': true });
  }
  return document;
}

const GO_TYPES: Record<string, string> = { string: 'string', integer: 'int', boolean: 'bool', array: '[]' };
const BYTES: Schema = { 'x-go-type': 'json.RawMessage' };

function changeOperation(operation: Operation, schemas: Schemas, shared: Record<string, Parameter>): void {
  const { operationId } = operation;
  const name = pascal(operationId);
  const responses = Object.entries(operation.responses).filter(([status]) => status.startsWith('2'));
  // The count of a dry run is a method by hand.
  const kept = operationId === 'startReplay' ? responses.filter(([status]) => status === '201') : responses;
  operation.responses = Object.fromEntries(kept);
  for (const [, { content }] of kept) nameContent(content, `${name}Result`, schemas);
  if (operation.requestBody !== undefined) {
    const body = Object.values(operation.requestBody.content)[0]?.schema;
    if (body?.properties !== undefined && Object.keys(body.properties).length === 0)
      delete operation.requestBody;
    else nameContent(operation.requestBody.content, `${name}Request`, schemas);
  }
  operation.parameters = (operation.parameters ?? []).map((given) => {
    const parameter = '$ref' in given ? shared[given.$ref.split('/').at(-1) ?? ''] : given;
    if (parameter === undefined) throw new Error(`${operationId} has an unknown parameter`);
    return { ...parameter, schema: { ...simplified(parameter.schema, name, schemas), ...SKIP } };
  });
}

function nameContent(content: Content, name: string, schemas: Schemas): void {
  for (const media of Object.values(content)) {
    if (media.schema.properties === undefined) continue;
    const simple = simplified(media.schema, name, schemas);
    if (simple.properties === undefined) media.schema = simple;
    else {
      schemas[name] = simple;
      media.schema = { $ref: `#/components/schemas/${name}` };
    }
  }
}

/** A schema without what Go has no words for; objects within it become schemas of their own. */
function simplified(schema: Schema, name: string, schemas: Schemas): Schema {
  if (schema.anyOf !== undefined) return simplifiedUnion(schema, name, schemas);
  if (schema.enum !== undefined || schema.const !== undefined) return simplifiedText(schema);
  if (schema.items !== undefined) {
    return { ...schema, items: named(schema.items, `${name}Item`, schemas) };
  }
  const isObject = schema.type === 'object';
  if (isObject && Object.keys(schema.properties ?? {}).length > 0) {
    const properties = Object.entries(schema.properties ?? {}).map(([key, property]): [string, Schema] => [
      key,
      named(property, `${name}${pascal(key)}`, schemas),
    ]);
    const required = [...(schema.required ?? []), ...typeOf(schema, name)];
    for (const [key, property] of properties)
      if (!required.includes(key) && isEmptyWhenMissing(property, name)) Object.assign(property, SKIP);
    const { additionalProperties, ...rest } = schema;
    const others = additionalProperties === true ? { additionalProperties: BYTES } : {};
    return { ...rest, ...others, required, properties: Object.fromEntries(properties) };
  }
  if (isObject && typeof schema.additionalProperties === 'object') {
    return {
      ...schema,
      additionalProperties: simplified(schema.additionalProperties, `${name}Value`, schemas),
    };
  }
  if (isObject) {
    const isSent = /^Send|Request$/.test(name);
    return {
      ...BYTES,
      'x-go-type': isSent ? 'map[string]any' : 'json.RawMessage',
      ...described(schema),
      ...SKIP,
    };
  }
  const saysNothing =
    schema.type === undefined && schema.$ref === undefined && schema['x-go-type'] === undefined;
  return saysNothing ? { ...BYTES, ...described(schema), ...SKIP } : schema;
}

/** A message says its type, also where the service would guess it. */
function typeOf(schema: Schema, name: string): string[] {
  const isMissing = name.startsWith('Send') && !(schema.required ?? []).includes('type');
  return isMissing && schema.properties?.type?.const !== undefined ? ['type'] : [];
}

/** Whether nobody would say the empty value: an optional text, and what a message or a query leaves out. */
function isEmptyWhenMissing({ type, format }: Schema, name: string): boolean {
  if (type === 'string') return format !== 'date-time';
  return (type === 'boolean' && name.startsWith('Send')) || (type === 'integer' && name.endsWith('Search'));
}

/** A nil slice says that it is missing, so that no pointer is needed. */
const SKIP: Schema = { 'x-go-type-skip-optional-pointer': true };

function simplifiedUnion(schema: Schema, name: string, schemas: Schemas): Schema {
  const variants = (schema.anyOf ?? []).filter(({ type }) => type !== 'null');
  // A new object says null by leaving out.
  const isNullable = variants.length < (schema.anyOf ?? []).length && !name.startsWith('New');
  const [first, ...others] = variants;
  if (first === undefined) return schema;
  if (others.length === 0) {
    const simple = named(first, name, schemas);
    if (simple.$ref !== undefined) return isNullable ? { anyOf: [simple, { type: 'null' }] } : simple;
    return nullableIf(isNullable, { ...simple, ...described(schema, simple.description) });
  }
  const areTexts = variants.every(({ type }) => type === 'string');
  if (areTexts) return nullableIf(isNullable, { type: 'string', ...described(schema, valuesOf(first)) });
  return { 'x-go-type': 'any', ...described(schema), ...SKIP };
}

function nullableIf(isNullable: boolean, schema: Schema): Schema {
  return isNullable && typeof schema.type === 'string' ? { ...schema, type: [schema.type, 'null'] } : schema;
}

function simplifiedText(schema: Schema): Schema {
  const { enum: _values, const: constant, ...rest } = schema;
  const type = typeof constant === 'boolean' ? 'boolean' : 'string';
  const text = [schema.description, valuesOf(schema)].filter((part) => part !== undefined).join(' ');
  return {
    ...rest,
    type,
    ...(text !== '' && { description: text }),
    ...(typeof constant === 'string' && { [CONSTANT]: constant }),
  };
}

function valuesOf({ enum: values, const: constant }: Schema): string | undefined {
  if (values !== undefined) return `One of ${values.join(', ')}.`;
  return constant === undefined ? undefined : `Always ${constant}.`;
}

function described(schema: Schema, otherwise?: string): { description?: string } {
  const description = schema.description ?? otherwise;
  return description === undefined ? {} : { description };
}

/** The schema, or a reference to it where it is an object. */
function named(schema: Schema, name: string, schemas: Schemas): Schema {
  const simple = simplified(schema, name, schemas);
  if (simple.properties === undefined) return simple;
  schemas[name] = { ...simple, title: name };
  return { $ref: `#/components/schemas/${name}` };
}

/** Go code beside the generated: which types are messages, and the constant members that JSON gets by itself. */
export function messagesForGo(
  document: OpenApiDocument,
  names: readonly string[],
  generated: string,
): string {
  const schemas = document.components.schemas as Schemas;
  // The generator writes the names in Go's way: CtaUrl is CtaURL.
  const types = [...generated.matchAll(/^type (\w+) /gm)].map(([, type = '']): [string, string] => [
    type.toLowerCase(),
    type,
  ]);
  const typeOfName = new Map(types);
  const goName = (name: string) => typeOfName.get(name.toLowerCase()) ?? name;
  const markers = names.map((name) => `func (${goName(name)}) messageToSend() {}`);
  const filled = Object.entries(schemas)
    .filter(([name]) => name.startsWith('Send'))
    .flatMap(([name, schema]) => fillingOf(goName(name), schema));
  return `// Code generated by scripts/generate-client.ts. DO NOT EDIT.

package heliograph

import "encoding/json"

${markers.join('\n')}

${filled.join('\n')}`;
}

/** A message without its type would be refused, and a type that is the only one need not be written. */
function fillingOf(name: string, schema: Schema): string[] {
  const constants = Object.entries(schema.properties ?? {}).filter(
    ([key, property]) => property[CONSTANT] !== undefined && (schema.required ?? []).includes(key),
  );
  if (constants.length === 0) return [];
  const lines = constants.map(
    ([key, property]) => `	if m.${pascal(key)} == "" {\n		m.${pascal(key)} = "${property[CONSTANT]}"\n	}`,
  );
  return [
    `// MarshalJSON adds what has one value only.
func (m ${name}) MarshalJSON() ([]byte, error) {
	type plain ${name}
${lines.join('\n')}
	return json.Marshal(plain(m))
}
`,
  ];
}

function pascal(name: string): string {
  return name.replaceAll(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_all, letter: string) => letter.toUpperCase());
}
