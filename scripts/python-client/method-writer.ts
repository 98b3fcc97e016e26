import type { DocumentedOperation } from '../../test/support/openapi-document.ts';
import { docstring, pascalCase, quoted, snakeCase } from './names.ts';
import type { Schema, TypeWriter } from './type-writer.ts';

/** Forms, archives and streams: the client has them by hand. */
export const BY_HAND = new Set(['uploadMedia', 'uploadTemplateMedia', 'exportCustomer', 'streamEvents']);

/** A POST that only reads. */
const READS = new Set(['searchConversations']);

export type Writers = { models: TypeWriter; requests: TypeWriter };
export type Flavour = 'sync' | 'async';

type Parameter = { name: string; type: string; key: string };

type Method = {
  name: string;
  documentation: string;
  inPath: readonly Parameter[];
  inQuery: readonly Parameter[];
  body: { type: string; isRequired: boolean } | null;
  hasKey: boolean;
  result: string;
  parse: string;
  item: string | null;
  operation: DocumentedOperation;
};

/** The methods of an operation: one that makes a request, and for a list one that reads all of its pages. */
export function methodsOf(operation: DocumentedOperation, writers: Writers, flavour: Flavour): string[] {
  const method = readMethod(operation, writers);
  return [requestMethod(method, flavour), ...(method.item === null ? [] : [pagesMethod(method, flavour)])];
}

function readMethod(operation: DocumentedOperation, { models, requests }: Writers): Method {
  const id = operation.operationId ?? '';
  const parameters = (place: string) =>
    operation.parameters
      .filter((parameter) => parameter.in === place)
      .map(({ name, schema }) => ({
        key: name,
        name: snakeCase(name),
        type: requests.typeOf(schema as Schema, pascalCase(`${id}-${name}`)),
      }));
  const result = resultType(operation, models);
  return {
    name: snakeCase(id),
    documentation: `${operation.summary}.\n\n${operation.description}`,
    inPath: parameters('path'),
    inQuery: parameters('query'),
    body: bodyOf(operation, requests),
    hasKey: parameters('header').some(({ key }) => key === 'Idempotency-Key'),
    result: result.startsWith('dict') ? result : result.replaceAll(/\b(?=[A-Z]\w)/g, 'models.'),
    parse: parserOf(id, result),
    item: itemType(operation, models),
    operation,
  };
}

function parserOf(id: string, result: string): string {
  // A file as text is no JSON.
  if (result === 'str') return 'bytes.decode';
  if (result.startsWith('dict')) return 'parse_any';
  return /^\w+$/.test(result)
    ? `models.${result}.model_validate_json`
    : `_${snakeCase(id).toUpperCase()}.validate_json`;
}

/** Responses of success; several of them, such as 200 and 201, are a union. */
function resultType(operation: DocumentedOperation, models: TypeWriter): string {
  const types = successes(operation).map((schema) =>
    models.typeOf(schema, `${pascalCase(operation.operationId ?? '')}Response`),
  );
  return [...new Set(types)].join(' | ');
}

function successes({ responses }: DocumentedOperation): Schema[] {
  return Object.entries(responses)
    .filter(([status]) => Number(status) < 300)
    .flatMap(([, { content = {} }]) => Object.values(content).map(({ schema }) => schema as Schema));
}

function itemType(operation: DocumentedOperation, models: TypeWriter): string | null {
  const result = resultType(operation, models);
  const text = models.classes.get(result) ?? '';
  const [, item] = /^ {4}data: list\[(\w+)\]/m.exec(text) ?? [];
  return item !== undefined && text.includes('next_cursor:') ? item : null;
}

function bodyOf(operation: DocumentedOperation, requests: TypeWriter): Method['body'] {
  const content = operation.requestBody?.content['application/json'];
  if (content === undefined) return null;
  const type = requests.typeOf(content.schema as Schema, `${pascalCase(operation.operationId ?? '')}Request`);
  // An object without members has nothing to say.
  if (type.startsWith('dict')) return null;
  return { type: `requests.${type}`, isRequired: operation.requestBody?.required === true };
}

function signature(method: Method, isPages: boolean): string[] {
  const { inPath, inQuery, body, hasKey } = method;
  const isOptional = body !== null && !(body.isRequired || isPages);
  const keyed = [
    ...inQuery.map(({ name, type }) => `${name}: ${type} | None = None`),
    ...(hasKey ? ['idempotency_key: str | None = None'] : []),
  ];
  return [
    'self',
    ...inPath.map(({ name, type }) => `${name}: ${type}`),
    ...(body === null ? [] : [`body: ${body.type}${isOptional ? ' | None = None' : ''}`]),
    ...(keyed.length === 0 ? [] : ['*', ...keyed]),
  ];
}

function requestMethod(method: Method, flavour: Flavour): string {
  const { operation, inPath, inQuery, body, hasKey } = method;
  const path = inPath.reduce(
    (text, { key, name }) => text.replace(`{${key}}`, `{path_part(${name})}`),
    operation.path,
  );
  const query = inQuery.map(({ key, name }) => `${quoted(key)}: ${name}`).join(', ');
  const args = [
    method.parse,
    quoted(operation.method),
    `${inPath.length > 0 ? 'f' : ''}${quoted(path)}`,
    ...(inQuery.length > 0 ? [`query={${query}}`] : []),
    ...(body === null ? [] : ['body=body']),
    ...(hasKey ? ['idempotency_key=idempotency_key or new_idempotency_key()'] : []),
    ...(READS.has(operation.operationId ?? '') ? ['is_safe=True'] : []),
  ];
  const [start, wait] = flavour === 'async' ? ['async def', 'await '] : ['def', ''];
  return [
    `    ${start} ${method.name}(${signature(method, false).join(', ')}) -> ${method.result}:`,
    docstring(method.documentation, '        '),
    `        return ${wait}self._call(${args.join(', ')})`,
  ].join('\n');
}

function pagesMethod(method: Method, flavour: Flavour): string {
  const { inPath, inQuery, body } = method;
  const given = inPath.map(({ name }) => name);
  const keyed = inQuery.map(({ name }) => `${name}=${name}`);
  const isInBody = body !== null;
  const args = [...given, ...(isInBody ? ['with_cursor(body, cursor)'] : []), ...keyed].join(', ');
  const iterator = flavour === 'async' ? 'AsyncIterator' : 'Iterator';
  const name = `iter_${method.name.replace(/^list_/, '')}`;
  return [
    `    def ${name}(${signature(method, true).join(', ')}) -> ${iterator}[models.${method.item}]:`,
    docstring(
      `The entries of all pages of \`${method.name}\`, which are asked for while you read.`,
      '        ',
    ),
    `        return self._pages(lambda cursor: self.${method.name}(${args}), ${isInBody ? 'body.get("cursor")' : 'cursor'})`,
  ].join('\n');
}

/** Parsers of responses that can be one of several. */
export function adaptersOf(operations: readonly DocumentedOperation[], { models }: Writers): string[] {
  return operations.flatMap((operation) => {
    const result = resultType(operation, models);
    if (!result.includes(' | ')) return [];
    const type = result.replaceAll(/\b(?=[A-Z]\w)/g, 'models.');
    const name = `_${snakeCase(operation.operationId ?? '').toUpperCase()}`;
    return [`${name}: TypeAdapter[${type}] = TypeAdapter(${type})`];
  });
}
