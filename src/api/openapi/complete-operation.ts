import type { ErrorCode } from '../errors/error-codes.ts';
import { type HeaderName, RATE_HEADERS } from './answer-headers.ts';
import type { AnswerDocs, OperationDocs } from './documented.ts';
import { errorAnswers, headerReferences } from './error-answers.ts';
import type { ParameterDocs } from './schema-examples.ts';

type Json = Record<string, unknown>;

type Media = Record<string, Json>;

/** An operation as @fastify/swagger makes it of the validating schemas. */
export type Operation = {
  parameters?: (Json & { name: string; in: string })[];
  requestBody?: { content: Media; required?: boolean; description?: string };
  responses: Record<string, { description: string; headers?: Json; content?: Media }>;
} & Json;

/** What follows from the route itself. */
export type RouteFacts = {
  /** Scopes of which a key must have one; null when no key is needed. */
  scopes: readonly string[] | null;
  /** Whether a key of any scope will do. */
  isAnyScope: boolean;
  /** Where every member is optional, no body at all is taken for an empty object. */
  isBodyRequired: boolean;
  parameters: Readonly<Record<string, ParameterDocs>>;
  /** Of the answers, by status. */
  examples: Readonly<Record<string, unknown>>;
};

/** Adds to an operation what no validating schema says: examples, headers, errors and who may ask. */
export function completeOperation(
  operation: Operation,
  docs: OperationDocs,
  route: RouteFacts,
  publicUrl: string,
): void {
  for (const parameter of operation.parameters ?? [])
    Object.assign(parameter, route.parameters[parameter.name]);
  if (docs.idempotent) {
    const reference = { $ref: '#/components/parameters/IdempotencyKey' };
    operation.parameters = [...(operation.parameters ?? []), reference as never];
  }
  const codes = errorCodes(operation, docs, route);
  completeBody(operation, docs, route);
  operation.security = route.scopes === null ? [] : [{ apiKey: [] }];
  if (route.scopes !== null) operation.description = withScopes(docs.description, route);
  const everyHeader: HeaderName[] =
    route.scopes === null ? ['X-Request-Id'] : ['X-Request-Id', ...RATE_HEADERS];
  for (const [status, answer] of Object.entries(docs.answers)) {
    const example = route.examples[status];
    operation.responses[status] = completeAnswer(operation.responses[status], answer, example, everyHeader);
  }
  Object.assign(operation.responses, errorAnswers(codes, publicUrl));
}

function completeBody(
  operation: Operation,
  { requests = {}, requestType = 'application/json' }: OperationDocs,
  { isBodyRequired }: RouteFacts,
): void {
  const [media] = Object.values(operation.requestBody?.content ?? {});
  if (media === undefined) return;
  const examples = Object.entries(requests).map(([name, value]) => [name, { value }]);
  operation.requestBody = {
    required: isBodyRequired,
    content: { [requestType]: { ...media, examples: Object.fromEntries(examples) } },
  };
}

function completeAnswer(
  given: Operation['responses'][string] | undefined,
  { description, headers = [] }: AnswerDocs,
  example: unknown,
  everyHeader: readonly HeaderName[],
): Operation['responses'][string] {
  if (given === undefined) throw new Error(`an answer without a schema is documented: ${description}`);
  const content = Object.entries(given.content ?? {}).map(([type, media]) => [
    type,
    { ...media, examples: { example: { value: example } } },
  ]);
  return {
    description,
    headers: headerReferences([...everyHeader, ...headers]),
    ...(content.length > 0 && { content: Object.fromEntries(content) }),
  };
}

function withScopes(description: string, { scopes, isAnyScope }: RouteFacts): string {
  if (scopes === null) return description;
  const names = isAnyScope ? 'any' : scopes.map((scope) => `\`${scope}\``).join(' or ');
  return `${description}\n\nScope: ${names}.`;
}

/** The codes that the route itself can answer with, and those that its documentation names. */
function errorCodes(operation: Operation, docs: OperationDocs, route: RouteFacts): ErrorCode[] {
  const parameters = operation.parameters ?? [];
  const codes: ErrorCode[] = ['service_unavailable', 'internal_error'];
  if (route.scopes !== null) {
    codes.push('invalid_parameter', 'invalid_api_key', 'expired_api_key', 'rate_limit_exceeded');
  }
  if (route.scopes !== null && !route.isAnyScope) codes.push('insufficient_scope');
  if (parameters.some((parameter) => parameter.in === 'path')) codes.push('not_found');
  if (parameters.some(({ name }) => name === 'cursor')) codes.push('invalid_cursor');
  if (operation.requestBody !== undefined) {
    codes.push('invalid_json', 'body_too_large', 'unsupported_media_type');
  }
  return [...codes, ...(docs.errors ?? [])];
}
