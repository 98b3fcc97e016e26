import type { FastifyReply, FastifyRequest } from 'fastify';
import { isControlMember } from '../../platform/graph/control-members.ts';
import type { PassedCall } from '../../platform/graph/graph-pass.ts';
import { isMembers } from '../../platform/json/json-members.ts';
import { phoneForUpstream } from '../../platform/phone-number.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { sendJsonText } from '../external/schema-kit.ts';
import { accountOf, SCOPES } from '../keys/api-key-auth.ts';
import { requireScope } from '../keys/key-check.ts';
import { BODY_LIMIT_BYTES } from '../plugins/body-parsers.ts';
import { allowedCall, isPassedForSome, type Method, type OwnObject, passedFields } from './allowed-calls.ts';
import { callOnce, type HarmlessCall, type Limits } from './call-once.ts';
import { errorParts, FacadeError, noSuchObject, notPassedOn, wrongParameter } from './facade-error.ts';
import { FACADE_ROOTS, hasNumber, type ObjectRoute } from './facade-paths.ts';
import { uploadUuidOf } from './media-ids.ts';
import { deleteUpload, mediaObject } from './media-routes.ts';
import { makeOwnedObjects, type OwnedObjects } from './owned-objects.ts';
import { PASSED_PATHS, readPassedBodies } from './pass-bodies.ts';
import { namesOfApps, tokenInfo } from './token-info.ts';
import { facadeSessions } from './upload-sessions.ts';

const METHODS: readonly Method[] = ['GET', 'POST', 'DELETE'];
const OBJECT_ID = /^\d{1,32}$/;

type Pass = Limits & { owned: OwnedObjects };
type PassRoute = ObjectRoute & { Params: { edge?: string; part?: string }; Body: unknown };
type PassRequest = FastifyRequest<PassRoute>;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** That of a path with its own edge. */
    facadeEdge?: string;
  }
  interface FastifyRequest {
    /** The call that a request is passed on as, but for its body. */
    passedCall: HarmlessCall | null;
  }
}

/** Calls about the WABA's own objects, which are passed on with its token, and files by their ids. */
export function facadePasses(app: ExternalApp, context: ExternalContext): void {
  const pass: Pass = { context, owned: makeOwnedObjects(), pauses: new Map() };
  app.decorateRequest('passedCall', null);
  facadeSessions(app, pass);
  for (const { paths, edge, bodyBytes, fileBytes } of PASSED_PATHS) {
    app.register(async (scope: ExternalApp) => {
      // Without a limit of the route, those of the parsers hold.
      const limit = bodyBytes === BODY_LIMIT_BYTES ? {} : { bodyLimit: bodyBytes };
      readPassedBodies(scope, fileBytes);
      const places = FACADE_ROOTS.flatMap((root) => paths.map((rest) => `${root}${rest}`));
      const methods = edge === undefined ? METHODS : (['POST'] as const);
      for (const [url, method] of places.flatMap((place) => methods.map((one) => [place, one] as const))) {
        scope.route<PassRoute>({
          method,
          url,
          exposeHeadRoute: false,
          ...limit,
          config: { ...scopesFor(method, url), fileBytes, ...(edge !== undefined && { facadeEdge: edge }) },
          onRequest: async (request) => await lookBeforeBody(pass, request as PassRequest),
          handler: async (request, reply) => await answer(pass, request as PassRequest, reply),
        });
      }
    });
  }
}

/** Deleting a file needs another scope than deleting an object: the handler knows which it is. */
function scopesFor(method: Method, path: string) {
  if (path.endsWith('/calls')) return SCOPES.graph;
  const isEither = method === 'GET' || (method === 'DELETE' && path.endsWith('/:id'));
  return isEither ? SCOPES.graphRead : SCOPES.graphManage;
}

/** Nothing is read and parsed for an object of others. */
async function lookBeforeBody(pass: Pass, request: PassRequest): Promise<void> {
  const { method, params } = request;
  const isUpload = method === 'DELETE' && restOf(request).length === 0 && uploadUuidOf(params.id) !== null;
  if (method === 'GET' || isUpload) return;
  requireScope(accountOf(request).scopes, changeScopes(request));
  request.passedCall = await harmlessCall(pass, request);
}

/** What a change needs: a call to a customer is none of the WABA's objects. */
function changeScopes(request: PassRequest) {
  const isSending = allowedCall('number', request.method, restOf(request))?.isSending === true;
  return (isSending ? SCOPES.graph : SCOPES.graphManage).scopes;
}

/** The path behind the object. */
function restOf({ params, routeOptions: { config } }: PassRequest): string[] {
  const { edge = config.facadeEdge, part } = params;
  return [edge, part].filter((segment) => segment !== undefined);
}

async function answer(pass: Pass, request: PassRequest, reply: FastifyReply): Promise<unknown> {
  const { wabaId, scopes } = accountOf(request);
  const { id, edge } = request.params;
  const isObject = restOf(request).length === 0;
  const isFile = isObject && scopes.includes('graph');
  if (isObject && request.method === 'GET' && id === 'debug_token') {
    return await describeToken(pass, request);
  }
  const media = isFile && request.method === 'GET' ? await mediaObject(pass.context, request) : null;
  if (media !== null) return media;
  if (isFile && request.method === 'DELETE' && (await deleteUpload(pass.context, wabaId, id))) {
    return { success: true };
  }
  if (request.method !== 'GET') requireScope(scopes, changeScopes(request));
  const call = request.passedCall ?? (await harmlessCall(pass, request));
  const body = await harmlessBody(pass, request);
  const { status, retryAfter, text } = await callOnce(pass, request, { ...call, body });
  if (request.method !== 'GET' && status < 300) pass.owned.forget(wabaId);
  if (retryAfter !== undefined) reply.header('retry-after', retryAfter);
  const isAppList = edge === 'subscribed_apps' && status < 300;
  return sendJsonText(reply.code(status), isAppList ? namesOfApps(text) : text);
}

async function describeToken(pass: Pass, request: PassRequest): Promise<unknown> {
  return await tokenInfo(pass.context.database, request, async (edge) => {
    const path = [accountOf(request).wabaId, edge];
    const call = { ...OWN_READ, path, query: new URLSearchParams(), version: request.params.version };
    return (await callOnce(pass, request, call)).text;
  });
}

const OWN_READ = { method: 'GET', body: null, object: 'waba' } as const;

/** A call without its body. Throws FacadeError for one that is not passed on. */
async function harmlessCall(pass: Pass, request: PassRequest): Promise<HarmlessCall> {
  const { id } = request.params;
  const rest = restOf(request);
  const version = request.params.version;
  const object = await objectOf(pass, request, id, rest);
  const allowed = object === null ? null : allowedCall(object, request.method, rest);
  if (object === null && isPassedForSome(request.method, rest)) throw noSuchObject();
  if (object === null || allowed === null) throw notPassedOn();
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(request.query)) {
    if (name === 'appsecret_proof') continue;
    if (!allowed.query.includes(name) || typeof value !== 'string') {
      throw wrongParameter(`The parameter ${name.slice(0, 100)} is not passed on.`);
    }
    query.set(name, value);
  }
  // Counts of a list, by their names.
  if (!/^[a-z_,]*$/.test(query.get('summary') ?? '')) throw wrongParameter('The summary is not passed on.');
  const asked = query.get('fields');
  const fields = asked === null ? '' : passedFields(object, rest, asked);
  if (fields === null) throw wrongParameter('Of the fields only plain names are passed on.');
  if (asked !== null) query.set('fields', fields);
  return { method: request.method as Method, version, path: [id, ...rest], query, body: null, object };
}

async function objectOf(
  pass: Pass,
  request: PassRequest,
  id: string,
  rest: readonly string[],
): Promise<OwnObject | null> {
  const { wabaId } = accountOf(request);
  if (id === wabaId) return 'waba';
  if (await hasNumber(pass.context.database, wabaId, id)) return 'number';
  const isCall = (['template', 'flow'] as const).some((kind) => allowedCall(kind, request.method, rest));
  return OBJECT_ID.test(id) && isCall ? await askForKind(pass, request, id) : null;
}

async function askForKind(pass: Pass, request: PassRequest, id: string): Promise<OwnObject | null> {
  const { wabaId } = accountOf(request);
  const version = request.params.version;
  return await pass.owned.kindOf(wabaId, id, async (edge, query) => {
    const call = { ...OWN_READ, version, path: [wabaId, edge], query };
    const { status, text } = await callOnce(pass, request, call);
    // A WABA without flows, or a token without the right to them, has none.
    if (status >= 500) throw new FacadeError(errorParts(2));
    return text;
  });
}

/** What a body says, written again; null without one. */
async function harmlessBody(pass: Pass, request: PassRequest): Promise<PassedCall['body']> {
  const { body } = request;
  if (body === undefined || body === null || request.method === 'GET') return null;
  const isForm = body instanceof FormData;
  if (!isForm && !isMembers(body)) throw wrongParameter('The body must be a JSON object or a form.');
  const entries: [string, unknown][] = isForm ? [...body.entries()] : Object.entries(body);
  const control = entries.find(([name]) => isControlMember(name));
  if (control !== undefined) throw wrongParameter(`The member ${control[0]} is not passed on.`);
  for (const [name, value] of entries.filter(([name]) => name === 'clone_flow_id')) {
    const isOwn =
      OBJECT_ID.test(String(value)) && (await askForKind(pass, request, String(value))) === 'flow';
    if (!isOwn) throw wrongParameter(`${name}: The WABA has no such flow.`);
  }
  return isForm ? { form: body } : { json: JSON.stringify(withReadPhones(body)) };
}

/** Upstream is to block whom we would read: a number that it might read otherwise goes out as a plus sign and digits. */
function withReadPhones(body: Record<string, unknown>): Record<string, unknown> {
  const { block_users: users } = body;
  if (!Array.isArray(users)) return body;
  const read = users.map((one: unknown) =>
    isMembers(one) && typeof one.user === 'string' ? { ...one, user: phoneForUpstream(one.user) } : one,
  );
  return { ...body, block_users: read };
}
