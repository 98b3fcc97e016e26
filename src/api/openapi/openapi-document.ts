import fastifySwagger from '@fastify/swagger';
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify';
import packageJson from '../../../package.json' with { type: 'json' };
import { API_KEY_SCOPES } from '../../features/keys/api-key.ts';
import { PLATFORM_SCOPES } from '../../features/keys/platform-key-store.ts';
import type { ErrorCode } from '../errors/error-codes.ts';
import { type AnswerDocs, DOCS, type OperationDocs, PLATFORM_TAGS, TAGS } from './documented.ts';
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
import { operationWebhooks } from './webhooks/operation-webhooks.ts';
import { webhookOperations } from './webhooks/webhook-operations.ts';

const DESCRIPTION = `REST API of a tenant's server to Heliograph, the gateway between the WhatsApp Business Platform and that server.

* Every request but the connection test and this document carries \`Authorization: Bearer ck_…\`. A key belongs to one WhatsApp Business Account (WABA) and sees nothing of another.
* Ids are strings. Times are ISO 8601 in UTC. Unknown parameters and members are refused.
* Lists have \`data\`, \`hasMore\` and \`nextCursor\`, which goes back as \`cursor\`.
* Every error is \`{"error": {"code": …}}\`; the codes are explained at \`/docs/errors\`.
* Members may be added to answers and events at any time: ignore those you do not know.`;

const PLATFORM_DESCRIPTION = `REST API of the operator's own program to Heliograph: tenants, WABAs and API keys under the program's own ids.

* Every request but this document carries \`Authorization: Bearer hp_…\`, from one of the networks of the key.
* PUT and DELETE may be repeated: equal requests make one thing. Secrets are in the answer that made them and in no other.
* No operation reads messages, events or files.
* Ids are strings, but for \`userId\`. Times are ISO 8601 in UTC. Unknown parameters and members are refused.
* Lists have \`data\`, \`hasMore\` and \`nextCursor\`, which goes back as \`cursor\`.
* Every error is \`{"error": {"code": …}}\`; the codes are explained at \`/docs/errors\`.`;

declare module 'fastify' {
  interface FastifyInstance {
    platformDocument(): object;
  }
}

/** One of the two documents: of what tenants' servers call, and of what the operator's program calls. */
const DOCUMENTS = {
  external: {
    decorator: 'swagger',
    title: 'Heliograph External API',
    description: DESCRIPTION,
    tags: TAGS,
    key: 'ck_',
    scopeCount: API_KEY_SCOPES.length,
  },
  platform: {
    decorator: 'platformDocument',
    title: 'Heliograph Platform API',
    description: PLATFORM_DESCRIPTION,
    tags: PLATFORM_TAGS,
    key: 'hp_',
    scopeCount: PLATFORM_SCOPES.length,
  },
} as const;

type DocumentName = keyof typeof DOCUMENTS;

const isOf = (name: DocumentName, url: string) => url.startsWith('/api/platform/') === (name === 'platform');

type RouteDocs = { docs: OperationDocs; route: RouteFacts };

/**
 * Makes `app.swagger()` and `app.platformDocument()` give the OpenAPI documents: all routes that come after this and declare `documented`. They are made
 * from the very schemas that validate; what this adds (errors, examples, headers) never reaches the serializer.
 */
export function addOpenApiDocuments(app: FastifyInstance, publicUrl: string): void {
  for (const name of Object.keys(DOCUMENTS) as DocumentName[]) addDocument(app, publicUrl, name);
}

function addDocument(app: FastifyInstance, publicUrl: string, name: DocumentName): void {
  const components: Components = new Map();
  const { decorator, title, description, tags } = DOCUMENTS[name];
  app.register(fastifySwagger, {
    decorator,
    convertConstToEnum: false,
    hideUntagged: true,
    openapi: {
      openapi: '3.1.0',
      info: {
        title,
        version: packageJson.version,
        description,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: publicUrl }],
      tags: [...tags],
    },
    transform: ({ schema, url, route }) => ({
      schema: isOf(name, url) ? documentedSchema(schema, route, components, name) : { hide: true },
      url,
    }),
    transformObject: (made) => {
      const document = 'openapiObject' in made ? made.openapiObject : made.swaggerObject;
      return complete(document as Record<string, unknown>, components, { publicUrl, name }) as never;
    },
  });
}

function documentedSchema(
  schema: FastifySchema | undefined,
  { config }: RouteOptions,
  components: Components,
  name: DocumentName,
): FastifySchema {
  const { [DOCS]: docs, ...shown } = { ...schema } as FastifySchema & { [DOCS]?: OperationDocs };
  if (docs === undefined) return { hide: true };
  const { body, params, querystring, response } = shown;
  const { scopes, platformScopes } = { ...config };
  const wanted = scopes ?? platformScopes ?? null;
  const { required, anyOf } = { ...(body as Record<string, unknown> | undefined) };
  const route: RouteFacts = {
    scopes: wanted,
    isAnyScope: wanted?.length === DOCUMENTS[name].scopeCount,
    isPlatform: name === 'platform',
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
  { publicUrl, name }: { publicUrl: string; name: DocumentName },
): Record<string, unknown> {
  const { paths } = document as { paths: Record<string, Record<string, Operation>> };
  for (const operation of Object.values(paths).flatMap((path) => Object.values(path))) {
    const { docs, route } = operation[DOCS] as RouteDocs;
    delete operation[DOCS];
    completeOperation(operation, docs, route, publicUrl);
  }
  documentSchema(ERROR_CODE_SCHEMA, components);
  documentSchema(ERROR_SCHEMA, components);
  const webhooks = name === 'external' ? webhookOperations(components) : operationWebhooks(components);
  const sorted = [...components].sort(([one], [other]) => (one < other ? -1 : 1));
  const bearerFormat = `${DOCUMENTS[name].key} and 64 hex digits`;
  const made = {
    ...document,
    webhooks,
    components: {
      securitySchemes: { apiKey: { type: 'http', scheme: 'bearer', bearerFormat } },
      headers: ANSWER_HEADERS,
      responses: sharedErrorAnswers(publicUrl),
      parameters: { IdempotencyKey: IDEMPOTENCY_KEY },
      schemas: Object.fromEntries(sorted),
    },
  };
  return { ...made, components: referredComponents(made) };
}

/** What some part of the document refers to, and the ways to sign in. */
function referredComponents({ components, ...rest }: Json & { components: Record<string, Json> }) {
  const texts = JSON.stringify([rest, components]);
  const kinds = Object.entries(components).map(([kind, all]) => {
    const isReferred = (name: string) =>
      kind === 'securitySchemes' || texts.includes(`"#/components/${kind}/${name}"`);
    return [kind, Object.fromEntries(Object.entries(all).filter(([name]) => isReferred(name)))] as const;
  });
  return Object.fromEntries(kinds.filter(([, all]) => Object.keys(all).length > 0));
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
  isPlatform: boolean;
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
  const namesObject = parameters.some((parameter) => parameter.in === 'path');
  if (namesObject && !route.isPlatform) codes.push('not_found');
  if (route.isPlatform && route.scopes !== null) codes.push('ip_not_allowed');
  if (parameters.some(({ name }) => name === 'cursor')) codes.push('invalid_cursor');
  if (operation.requestBody !== undefined) {
    codes.push('invalid_json', 'body_too_large', 'unsupported_media_type');
  }
  return [...codes, ...(docs.errors ?? [])];
}
