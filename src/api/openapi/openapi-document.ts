import fastifySwagger from '@fastify/swagger';
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify';
import packageJson from '../../../package.json' with { type: 'json' };
import { API_KEY_SCOPES } from '../../keys/api-key-scopes.ts';
import { ANSWER_HEADERS } from './answer-headers.ts';
import { completeOperation, type Operation, type RouteFacts } from './complete-operation.ts';
import { type Components, documentSchema } from './components.ts';
import { DOCS, type OperationDocs } from './documented.ts';
import { ERROR_CODE_SCHEMA, ERROR_SCHEMA, sharedErrorAnswers } from './error-answers.ts';
import { exampleOf, parameterDocs } from './schema-examples.ts';
import { TAGS } from './tags.ts';
import { webhookOperations } from './webhooks/webhook-operations.ts';

const DESCRIPTION = `REST API of a tenant's server to Heliograph, the gateway between the WhatsApp Business Platform and that server.

* Every request but the connection test and this document carries \`Authorization: Bearer ck_…\`. A key belongs to one WhatsApp Business Account (WABA) and sees nothing of another.
* Ids are strings. Times are ISO 8601 in UTC. Unknown parameters and members are refused.
* Lists have \`data\`, \`hasMore\` and \`nextCursor\`, which goes back as \`cursor\`.
* Every error is \`{"error": {"code": …}}\`; the codes are explained at \`/docs/errors\`.
* Members may be added to answers and events at any time: ignore those you do not know.`;

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Makes a repetition harmless: the first answer is given again. 1 to 255 visible ASCII characters, kept for 48 hours.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
  example: 'order-7-ready',
};

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

/** The schema of a route with its named parts replaced by references; hidden unless it is documented. */
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
