import fastifySwagger from '@fastify/swagger';
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify';
import packageJson from '../../../package.json' with { type: 'json' };
import { API_KEY_SCOPES } from '../../features/keys/api-key.ts';
import type { ErrorCode } from '../errors/error-codes.ts';
import { type AnswerDocs, DOCS, type OperationDocs, TAGS } from './documented.ts';
import {
  ANSWER_HEADERS,
  ERROR_CODE_SCHEMA,
  ERROR_SCHEMA,
  errorAnswers,
  type HeaderName,
  headerReferences,
  RATE_HEADERS,
  sharedErrorAnswers,
} from './error-responses.ts';
import { IDEMPOTENCY_KEY } from './idempotency-key.ts';
import { type Components, documentSchema, exampleOf, type ParameterDocs, parameterDocs } from './schemas.ts';
import { webhookOperations } from './webhooks/webhook-operations.ts';

const DESCRIPTION = `REST API of a tenant's server to Heliograph, the gateway between the WhatsApp Business Platform and that server.

* Every request but the connection test and this document carries \`Authorization: Bearer ck_…\`. A key belongs to one WhatsApp Business Account (WABA) and sees nothing of another.
* Ids are strings. Times are ISO 8601 in UTC. Unknown parameters and members are refused.
* Lists have \`data\`, \`hasMore\` and \`nextCursor\`, which goes back as \`cursor\`.
* Every error is \`{"error": {"code": …}}\`; the codes are explained at \`/docs/errors\`.
* Members may be added to answers and events at any time: ignore those you do not know.`;

type RouteDocs = { docs: OperationDocs; route: RouteFacts };

/**
 * Makes `app.swagger()` give the OpenAPI document: all routes that come after this and declare `documented`. It is made
 * from the very schemas that validate; what it adds (errors, examples, headers) never reaches the serializer.
 */
export function addOpenApiDocument(app: FastifyInstance, publicUrl: string): void {
  const components: Components = new Map();
  app.register(fastifySwagger, {
    convertConstToEnum: false,
    hideUntagged: true,
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Heliograph External API',
        version: packageJson.version,
        description: DESCRIPTION,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: publicUrl }],
      tags: [...TAGS],
    },
    transform: ({ schema, url, route }) => ({ schema: documentedSchema(schema, route, components), url }),
    transformObject: (made) => {
      const document = 'openapiObject' in made ? made.openapiObject : made.swaggerObject;
      return complete(document as Record<string, unknown>, components, publicUrl) as never;
    },
  });
}

function documentedSchema(
  schema: FastifySchema | undefined,
  { config }: RouteOptions,
  components: Components,
): FastifySchema {
  const { [DOCS]: docs, ...shown } = { ...schema } as FastifySchema & { [DOCS]?: OperationDocs };
  if (docs === undefined) return { hide: true };
  const { body, params, querystring, response } = shown;
  const { scopes = null } = { ...config };
  const { required, anyOf } = { ...(body as Record<string, unknown> | undefined) };
  const route: RouteFacts = {
    scopes,
    isAnyScope: scopes?.length === API_KEY_SCOPES.length,
    isBodyRequired: required !== undefined || anyOf !== undefined,
    parameters: parameterDocs([params, querystring]),
    examples: answerExamples(docs, response as Record<string, unknown>),
  };
  return {
    ...shown,
    ...(body !== undefined && { body: documentSchema(body, components) }),
    ...(params !== undefined && { params: documentSchema(params, components) }),
    ...(querystring !== undefined && { querystring: documentSchema(querystring, components) }),
    response: Object.fromEntries(
      Object.entries({ ...(response as object) }).map(([status, one]) => [
        status,
        documentSchema(one, components),
      ]),
    ),
    [DOCS]: { docs, route } satisfies RouteDocs,
  } as FastifySchema;
}

function answerExamples({ answers }: OperationDocs, response: Readonly<Record<string, unknown>>) {
  const examples = Object.entries(answers).map(([status, { example: difference }]) => {
    const example = exampleOf(response[status]);
    return [status, difference === undefined ? example : { ...(example as object), ...difference }];
  });
  return Object.fromEntries(examples);
}

function complete(
  document: Record<string, unknown>,
  components: Components,
  publicUrl: string,
): Record<string, unknown> {
  const { paths } = document as { paths: Record<string, Record<string, Operation>> };
  for (const operation of Object.values(paths).flatMap((path) => Object.values(path))) {
    const { docs, route } = operation[DOCS] as RouteDocs;
    delete operation[DOCS];
    completeOperation(operation, docs, route, publicUrl);
  }
  documentSchema(ERROR_CODE_SCHEMA, components);
  documentSchema(ERROR_SCHEMA, components);
  const webhooks = webhookOperations(components);
  const sorted = [...components].sort(([one], [other]) => (one < other ? -1 : 1));
  return {
    ...document,
    webhooks,
    components: {
      securitySchemes: { apiKey: { type: 'http', scheme: 'bearer', bearerFormat: 'ck_ and 64 hex digits' } },
      headers: ANSWER_HEADERS,
      responses: sharedErrorAnswers(publicUrl),
      parameters: { IdempotencyKey: IDEMPOTENCY_KEY },
      schemas: Object.fromEntries(sorted),
    },
  };
}

type Json = Record<string, unknown>;

type Media = Record<string, Json>;

type Operation = {
  parameters?: (Json & { name: string; in: string })[];
  requestBody?: { content: Media; required?: boolean; description?: string };
  responses: Record<string, { description: string; headers?: Json; content?: Media }>;
} & Json;

type RouteFacts = {
  /** Scopes of which a key must have one; null when no key is needed. */
  scopes: readonly string[] | null;
  isAnyScope: boolean;
  /** Where every member is optional, no body at all is taken for an empty object. */
  isBodyRequired: boolean;
  parameters: Readonly<Record<string, ParameterDocs>>;
  /** Of the responses, by status. */
  examples: Readonly<Record<string, unknown>>;
};

function completeOperation(
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
  { description, headers = [], type: mediaType }: AnswerDocs,
  example: unknown,
  everyHeader: readonly HeaderName[],
): Operation['responses'][string] {
  if (given === undefined) throw new Error(`an answer without a schema is documented: ${description}`);
  const content = Object.entries(given.content ?? {}).map(([type, media]) => [
    mediaType ?? type,
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
