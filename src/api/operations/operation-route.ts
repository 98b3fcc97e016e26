import multipart from '@fastify/multipart';
import type { FastifyContextConfig, FastifyReply, FastifyRequest } from 'fastify';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { Nothing } from '../external/schema-kit.ts';
import { accountOf, apiActorOf, SCOPES } from '../keys/api-key-auth.ts';
import { documented, type OperationDocs } from '../openapi/documented.ts';
import type { ApiCall, Operation } from './operation.ts';

/** Leaves time for the start of a workflow within the time that a request may take. */
const TEST_EVENT_WAIT_MS = 8_000;

const WITH_BODY = new Set(['POST', 'PUT', 'PATCH']);

/**
 * Adds the routes of operations. Their schemas validate requests, and the OpenAPI document is made of them. Forms are
 * read in their own scope: no other route takes them.
 */
export function addOperations(
  app: ExternalApp,
  context: ExternalContext,
  operations: readonly Operation[],
): void {
  const isForm = ({ requestType }: Operation) => requestType === 'multipart/form-data';
  for (const each of operations.filter((one) => !isForm(one))) addOperation(app, context, each);
  app.register(async (forms: ExternalApp) => {
    forms.removeAllContentTypeParsers();
    await forms.register(multipart, { throwFileSizeLimit: false });
    for (const each of operations.filter(isForm)) addOperation(forms, context, each);
  });
}

function addOperation(app: ExternalApp, context: ExternalContext, operation: Operation): void {
  addRoute(app, operation, SCOPES[operation.scope], (request, reply) => callOf(request, reply, context));
}

type Routed<Call> = Omit<Operation, 'scope' | 'run' | 'json' | 'command'> & {
  run(call: Call, input: Record<string, unknown>): Promise<unknown>;
  json?(result: unknown, call: Call): unknown;
};

/** Adds the route of an operation, whichever kind of key calls it. */
export function addRoute<Call>(
  app: ExternalApp,
  operation: Routed<Call>,
  config: FastifyContextConfig,
  callOf: (request: FastifyRequest, reply: FastifyReply) => Call,
): void {
  const { method, path: url, route = {} } = operation;
  app.route({
    ...route,
    method,
    url,
    schema: schemaOf(operation),
    config: { ...route.config, ...config },
    handler: async (request, reply) => {
      const call = callOf(request, reply);
      const result = await operation.run(call, inputOf(request, operation));
      const status = operation.status?.(result) ?? onlyStatus(operation);
      if (status !== null) reply.code(status);
      const location = operation.location?.(result) ?? null;
      if (location !== null) reply.header('location', location);
      const type = status === null ? undefined : operation.answers[status]?.type;
      if (type === 'text/csv') reply.type(`${type}; charset=utf-8`);
      return operation.json === undefined ? result : operation.json(result, call);
    },
  });
}

type Shape = Pick<Routed<never>, 'id' | 'method' | 'params' | 'query' | 'body' | 'answers' | 'checkId'> &
  Omit<OperationDocs, 'operationId' | 'answers'>;

function schemaOf(operation: Shape) {
  const { id: operationId, method, params, query = Nothing, body, answers, ...docs } = operation;
  const { requests = body === undefined ? { empty: {} } : {} } = docs;
  return {
    ...documented({ ...docs, requests, operationId, answers }),
    ...(params !== undefined && { params }),
    querystring: query,
    ...((WITH_BODY.has(method) || body !== undefined) && { body: body ?? Nothing }),
    response: Object.fromEntries(Object.entries(answers).map(([status, { schema }]) => [status, schema])),
  };
}

/** Of several, `run` or `status` chooses. */
function onlyStatus({ answers }: Shape): number | null {
  const [status, ...others] = Object.keys(answers);
  return others.length === 0 ? Number(status) : null;
}

function inputOf(request: FastifyRequest, { checkId }: Shape): Record<string, unknown> {
  const params = request.params as Readonly<Record<string, string>>;
  const { id } = params;
  const checked = checkId === undefined || id === undefined ? {} : { id: checkId(id) };
  return { ...(request.query as object), ...(request.body as object | undefined), ...params, ...checked };
}

function callOf(request: FastifyRequest, reply: FastifyReply, context: ExternalContext): ApiCall {
  const account = accountOf(request);
  const name = `API key ${account.keyId}`;
  const { accounts, startDelivery } = context;
  return {
    ...context,
    account,
    request,
    reply,
    wabaId: account.wabaId,
    tools: { ...accounts, actor: apiActorOf(request) },
    by: { name, inText: name },
    testEvents: { startDelivery, waitMs: TEST_EVENT_WAIT_MS },
    timeoutMs: undefined,
  };
}
