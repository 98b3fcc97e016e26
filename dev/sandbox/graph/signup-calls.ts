import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { JsonObject } from '../payloads/webhook-body.ts';
import { SYNC_TYPES } from '../registration-register.ts';
import type { UpstreamContext } from '../upstream-context.ts';
import { APP, isAppToken } from './app-subscriptions.ts';
import { answerFault } from './fault-answer.ts';
import { type GraphFailure, invalidParameter, objectMissing, refusedCall } from './graph-failure.ts';
import { GRAPH_OBJECT_PATH, type GraphObjectRoute } from './graph-page.ts';

type NumberRoute = GraphObjectRoute & { Body: JsonObject | undefined };
type FaultTarget = 'token_debug' | 'waba_subscription' | 'registration' | 'app_state_sync';

const OAUTH = '/:version(^v\\d+\\.\\d+$)/oauth/access_token';
const DEBUG = '/:version(^v\\d+\\.\\d+$)/debug_token';
const SUCCESS = { success: true };

function refuse(reply: FastifyReply, { status, body }: GraphFailure): FastifyReply {
  return reply.code(status).send(body);
}

type ExchangeRoute = {
  Querystring: { client_id?: string; client_secret?: string; redirect_uri?: string; code?: string };
};

const REFUSED_CODES = {
  unknown: refusedCall(100, 'Invalid verification code format.', 36007),
  expired: refusedCall(100, 'This authorization code has expired.', 36007),
  used: refusedCall(100, 'This authorization code has been used.', 36009),
  address: refusedCall(100, 'redirect_uri is not identical to the one of the dialog.', 36008),
};

/** GET /{version}/oauth/access_token: the token for a code of the dialog; the secret of the app stands in for a token. */
export function registerCodeExchange(app: FastifyInstance, context: UpstreamContext): void {
  app.get<ExchangeRoute>(OAUTH, async ({ query }, reply) => {
    const { client_id: clientId = '', client_secret: secret, code = '', redirect_uri: address = '' } = query;
    const fault = context.faults.take('code_exchange', clientId);
    if (fault !== undefined && (await answerFault(context, reply, fault, { id: clientId }))) return reply;
    if (clientId !== APP.id || secret !== context.appSecret) {
      return refuse(reply, refusedCall(1, 'Error validating client secret.'));
    }
    const answer = context.signup.exchange(code, address);
    if ('refused' in answer) return refuse(reply, REFUSED_CODES[answer.refused]);
    return { access_token: answer.token, token_type: 'bearer' };
  });
}

/** What connects a number: what a token may do, the subscription of a WABA, the registration of a number, the data of its app. */
export function registerSignupCalls(app: FastifyInstance, context: UpstreamContext): void {
  const isOver = async (match: FaultTarget, id: string, reply: FastifyReply) => {
    const fault = context.faults.take(match, id);
    return fault !== undefined && (await answerFault(context, reply, fault, { id }));
  };
  app.get<{ Querystring: { input_token?: string } }>(DEBUG, async (request, reply) => {
    if (await isOver('token_debug', APP.id, reply)) return reply;
    return { data: tokenObject(request, context) };
  });
  app.post<NumberRoute>(`${GRAPH_OBJECT_PATH}/subscribed_apps`, async ({ params: { id }, body }, reply) => {
    if (await isOver('waba_subscription', id, reply)) return reply;
    const refusal = subscribe(context, id, body ?? {});
    return refusal === null ? SUCCESS : refuse(reply, refusal);
  });
  app.delete<GraphObjectRoute>(`${GRAPH_OBJECT_PATH}/subscribed_apps`, async ({ params: { id } }, reply) => {
    if (!context.phones.hasWaba(id)) return refuse(reply, objectMissing(id));
    context.registrations.unsubscribe(id);
    return SUCCESS;
  });
  app.post<NumberRoute>(`${GRAPH_OBJECT_PATH}/register`, async ({ params: { id }, body }, reply) => {
    if (await isOver('registration', id, reply)) return reply;
    const refusal = register(context, id, body ?? {});
    return refusal === null ? SUCCESS : refuse(reply, refusal);
  });
  app.post<NumberRoute>(`${GRAPH_OBJECT_PATH}/smb_app_data`, async ({ params: { id }, body }, reply) => {
    if (await isOver('app_state_sync', id, reply)) return reply;
    const refusal = sync(context, id, body ?? {});
    return refusal === null
      ? { messaging_product: 'whatsapp', request_id: `sync-${id}-${body?.sync_type}` }
      : refuse(reply, refusal);
  });
}

/** A token that did not come from the dialog is one of a system user, which names no WABAs. */
function tokenObject(
  request: FastifyRequest<{ Querystring: { input_token?: string } }>,
  context: UpstreamContext,
): JsonObject {
  const { input_token: token = '' } = request.query;
  const grant = context.signup.grantOf(token);
  const isOwn = request.headers.authorization === `Bearer ${token}`;
  const isKnown = grant !== undefined || context.accessToken === undefined || token === context.accessToken;
  if (!isKnown || !(isOwn || isAppToken(request, context))) {
    return { is_valid: false, scopes: [], error: { code: 190, message: 'Invalid OAuth access token.' } };
  }
  const scopes = grant?.scopes ?? ['whatsapp_business_management', 'whatsapp_business_messaging'];
  const granular = scopes.map((scope) => ({ scope, target_ids: grant?.wabaIds ?? [] }));
  return {
    app_id: APP.id,
    application: APP.name,
    type: 'SYSTEM_USER',
    is_valid: true,
    expires_at: 0,
    data_access_expires_at: 0,
    scopes: [...scopes, 'public_profile'],
    ...(grant !== undefined && grant.wabaIds.length > 0 && { granular_scopes: granular }),
  };
}

function subscribe(context: UpstreamContext, wabaId: string, body: JsonObject): GraphFailure | null {
  if (!context.phones.hasWaba(wabaId)) return objectMissing(wabaId);
  const { override_callback_uri: address, verify_token: verifyToken } = body;
  if (address !== undefined && (typeof address !== 'string' || typeof verifyToken !== 'string')) {
    return invalidParameter(100, 'Give override_callback_uri with verify_token.');
  }
  return context.registrations.subscribe(wabaId, address ?? null)
    ? null
    : invalidParameter(
        100,
        'Before override the current callback uri, your app must be subscribed to receive messages for WhatsApp Business Account.',
      );
}

function register(context: UpstreamContext, id: string, body: JsonObject): GraphFailure | null {
  const phone = context.phones.find(id);
  if (phone === undefined) return objectMissing(id);
  const { messaging_product: product, pin } = body;
  if (product !== 'whatsapp' || typeof pin !== 'string' || !/^\d{6}$/.test(pin)) {
    return invalidParameter(100, 'Param pin must be 6 characters long.');
  }
  if (phone.isOnBizApp === true) {
    return refusedCall(100, 'The number is used in the WhatsApp Business app and is not registered.');
  }
  if (phone.codeVerificationStatus === 'NOT_VERIFIED') {
    return refusedCall(133006, 'Phone number needs to be verified before registering.');
  }
  const outcome = context.registrations.register(phone, pin);
  if (outcome === 'wrong_pin') return refusedCall(133005, 'Two step verification PIN Mismatch.');
  return outcome === 'too_often'
    ? refusedCall(133016, 'Account register/deregister rate limit exceeded.')
    : null;
}

function sync(context: UpstreamContext, id: string, body: JsonObject): GraphFailure | null {
  const phone = context.phones.find(id);
  if (phone === undefined) return objectMissing(id);
  const type = SYNC_TYPES.find((one) => one === body.sync_type);
  if (body.messaging_product !== 'whatsapp' || type === undefined || phone.isOnBizApp !== true) {
    return invalidParameter(100, 'Give the sync_type of a number of the WhatsApp Business app.');
  }
  const outcome = context.registrations.sync(phone, type);
  if (outcome === 'twice') return refusedCall(2593107, 'Synchronization request limit exceeded.');
  return outcome === 'too_late'
    ? refusedCall(2593108, 'Synchronization request made outside of allowed time window.')
    : null;
}
