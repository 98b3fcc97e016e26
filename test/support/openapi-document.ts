import Schema from 'typebox/schema';

export type Json = Record<string, unknown>;

type DocumentedMedia = { schema: Json; examples?: Record<string, { value: unknown }> };

type DocumentedAnswer = {
  description: string;
  headers?: Json;
  content?: Record<string, DocumentedMedia>;
};

type DocumentedParameter = { name: string; in: string; schema: Json } & Json;

export type DocumentedOperation = {
  method: string;
  path: string;
  operationId?: string;
  summary?: string;
  description?: string;
  tags?: string[];
  security?: Json[];
  parameters: DocumentedParameter[];
  requestBody?: { required: boolean; content: Record<string, DocumentedMedia> };
  responses: Record<string, DocumentedAnswer>;
};

export type OpenApiDocument = {
  openapi: string;
  paths: Record<string, Record<string, Json>>;
  webhooks: Record<string, Record<string, Json>>;
  components: Record<string, Record<string, Json>>;
  tags: { name: string }[];
} & Json;

/** What a `$ref` of the document leads to; anything else as it is. */
export function followed<T>(document: OpenApiDocument, value: T | { $ref: string }): T {
  if (typeof value !== 'object' || value === null || !('$ref' in value)) return value as T;
  const parts = value.$ref.replace('#/', '').split('/');
  const found = parts.reduce<unknown>((at, part) => (at as Json | undefined)?.[part], document);
  if (found === undefined) throw new Error(`the document has no ${value.$ref}`);
  return found as T;
}

/** The operations of the document, or of its webhooks. */
export function operationsOf(document: OpenApiDocument, part: 'paths' | 'webhooks' = 'paths') {
  return Object.entries(document[part] ?? {}).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): DocumentedOperation => {
      const given = operation as unknown as DocumentedOperation;
      const answers = Object.entries(given.responses).map(([status, answer]) => [
        status,
        followed(document, answer),
      ]);
      return {
        ...given,
        method: method.toUpperCase(),
        path,
        parameters: (given.parameters ?? []).map((parameter) => followed(document, parameter)),
        responses: Object.fromEntries(answers),
      };
    }),
  );
}

/** Checks values against a schema of the document, whose references it may hold. */
export function validatorOf(document: OpenApiDocument, schema: Json): (value: unknown) => string[] {
  const validator = Schema.Compile({ ...resolved(document, schema) });
  return (value) => {
    const [isValid, errors] = validator.Errors(value);
    return isValid ? [] : errors.map((error) => `${error.instancePath} ${error.message}`);
  };
}

/** The schema with every reference replaced by what it leads to; the document has no circles. */
function resolved(document: OpenApiDocument, value: unknown): Json {
  if (Array.isArray(value)) return value.map((one) => resolved(document, one)) as unknown as Json;
  if (typeof value !== 'object' || value === null) return value as unknown as Json;
  if ('$ref' in value) return resolved(document, followed(document, value as { $ref: string }));
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, resolved(document, one)]));
}
