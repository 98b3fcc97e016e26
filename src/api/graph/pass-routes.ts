import type { FastifyReply, FastifyRequest } from 'fastify';
import { noteTokenRefused } from '../../features/accounts/access-tokens.ts';
import { isControlMember } from '../../platform/graph/control-members.ts';
import { isTokenError } from '../../platform/graph/graph-error.ts';
import type { PassedAnswer, PassedCall } from '../../platform/graph/graph-pass.ts';
import { isMembers, membersOf } from '../../platform/json/json-members.ts';
import { phoneForUpstream } from '../../platform/phone-number.ts';
import { openRateLimitStore } from '../../platform/postgres/rate-limit-store.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { sendJsonText } from '../external/schema-kit.ts';
import { callUpstream } from '../external/upstream-calls.ts';
import { accountOf, SCOPES } from '../keys/api-key-auth.ts';
import { requireScope } from '../keys/key-check.ts';
import { BODY_LIMIT_BYTES } from '../plugins/body-parsers.ts';
import { allowedCall, isPassedForSome, type Method, type OwnObject, passedFields } from './allowed-calls.ts';
import { answerForTenant } from './answer-text.ts';
import { recordPassedChange } from './change-audit.ts';
import {
  errorJson,
  errorParts,
  FacadeError,
  noSuchObject,
  notPassedOn,
  refusedOtherwise,
  wrongParameter,
} from './facade-error.ts';
import { FACADE_ROOTS, facadeUrl, hasNumber, type ObjectRoute } from './facade-paths.ts';
import { uploadUuidOf } from './media-ids.ts';
import { deleteUpload, mediaObject } from './media-routes.ts';
import { makeOwnedObjects, type OwnedObjects } from './owned-objects.ts';
import { PASSED_PATHS, readPassedBodies } from './pass-bodies.ts';
import { namesOfApps, tokenInfo } from './token-info.ts';

/** Upstream allows 5,000 calls an hour for a WABA; what the service asks for itself needs some of them. */
const CALLS_PER_HOUR = 4_000;
const METHODS: readonly Method[] = ['GET', 'POST', 'DELETE'];
const OBJECT_ID = /^\d{1,32}$/;

type Pass = { context: ExternalContext; owned: OwnedObjects; pauses: Map<string, number> };
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

type HarmlessCall = Omit<PassedCall, 'token'> & { object: OwnObject };

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

/** Calls upstream within its limits. The answer holds neither the token nor an address of upstream's pages. */
async function callOnce(pass: Pass, request: PassRequest, call: HarmlessCall): Promise<PassedAnswer> {
  const { context } = pass;
  const { wabaId } = accountOf(request);
  await keepWithinLimits(pass, wabaId);
  let used = '';
  const note = async (status: number | null) => {
    if (call.method !== 'GET') await recordPassedChange(context.database, request, call, status);
  };
  const passed = await callUpstream(context, wabaId, (client, token) => {
    used = token;
    return client.passOn({ ...call, token });
  }).catch(async (error: unknown) => {
    // Without a response, upstream may have changed it all the same.
    if (used !== '') await note(null);
    throw error;
  });
  await note(passed.status);
  const own = { baseUrl: facadeUrl(context, request), token: used, queryToken: request.queryToken };
  const text = answerForTenant(passed.text, own);
  if (text === null && passed.status < 300) {
    const message = '(#2) The answer of the platform cannot be read';
    throw new FacadeError({ status: 502, code: 2, message });
  }
  const answered = { ...passed, text: text ?? '{}' };
  return passed.status < 300 ? answered : await refusedAnswer(pass, wabaId, answered);
}

const THROTTLED = new Set([4, 17, 613, 80_007, 80_008]);
const PAUSE_MS = 60_000;

async function refusedAnswer(pass: Pass, wabaId: string, refused: PassedAnswer): Promise<PassedAnswer> {
  const { code } = membersOf(membersOf(JSON.parse(refused.text)).error);
  if (refused.status === 429 || (typeof code === 'number' && THROTTLED.has(code))) {
    pass.pauses.set(wabaId, Date.now() + PAUSE_MS);
  }
  const known = typeof code === 'number' ? code : null;
  if (!isTokenError({ httpStatus: refused.status, code: known })) {
    if (known === null) throw refusedOtherwise(refused.status);
    return refused;
  }
  // To the client, code 190 would mean its own key: it is the operator who has to act.
  await noteTokenRefused(pass.context.database, wabaId, 'The upstream platform refused the access token.');
  const parts = errorParts(131_000, 'The WABA has no usable upstream access token.');
  return { ...refused, status: parts.status, text: errorJson(parts, '') };
}

/** Throws FacadeError while upstream has asked to wait, or when an hour's calls are used up. */
async function keepWithinLimits({ context, pauses }: Pass, wabaId: string): Promise<void> {
  const until = pauses.get(wabaId) ?? 0;
  if (until > Date.now()) throw throttled('The platform has asked to wait: ask again in a minute.');
  pauses.delete(wabaId);
  const calls = openRateLimitStore(context.database, { kind: 'graph_call', windowSeconds: 3_600 });
  const { consumed } = await calls.add(wabaId, 1);
  if (consumed > CALLS_PER_HOUR) throw throttled(`A WABA has ${CALLS_PER_HOUR} such calls an hour.`);
}

function throttled(details: string): FacadeError {
  return new FacadeError(errorParts(80_008, details, 429));
}
