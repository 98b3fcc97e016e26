import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { KNOWN_FIELDS } from '../../../src/platform/upstream-fields.ts';
import type { UpstreamContext } from '../upstream-context.ts';
import { type GraphFailure, invalidParameter, objectMissing, refusedCall } from './graph-failure.ts';
import { GRAPH_OBJECT_PATH, type GraphObjectRoute } from './graph-page.ts';

/** The app that every account of the sandbox sends to. */
export const APP = { id: '700000000000001', name: 'Heliograph sandbox', link: '' };

const OBJECT = 'whatsapp_business_account';

type SubscriptionRoute = GraphObjectRoute & {
  Querystring: { object?: string; fields?: string };
  Body: { object?: string; fields?: string | string[]; callback_url?: string } | undefined;
};

/** True for the token of the app itself, which its id and its secret make. */
export function isAppToken(
  { headers: { authorization } }: FastifyRequest,
  context: UpstreamContext,
): boolean {
  return authorization === `Bearer ${APP.id}|${context.appSecret}`;
}

/** Which app an account sends to, and GET, POST and DELETE /{version}/{app}/subscriptions, with the token of the app: the webhook fields that it has subscribed to. */
export function registerAppSubscriptions(app: FastifyInstance, context: UpstreamContext): void {
  registerSubscribedApps(app, context);
  const subscribed = new Set<string>(KNOWN_FIELDS);
  const path = `${GRAPH_OBJECT_PATH}/subscriptions`;
  const refusalOf = (request: FastifyRequest<SubscriptionRoute>): GraphFailure | null => {
    const { id } = request.params;
    if (id !== APP.id) return objectMissing(id);
    return isAppToken(request, context)
      ? null
      : refusedCall(15, 'This method must be called with an app access_token.');
  };
  const refuse = (reply: FastifyReply, { status, body }: GraphFailure) => reply.code(status).send(body);
  app.get<SubscriptionRoute>(path, async (request, reply) => {
    const refusal = refusalOf(request);
    if (refusal !== null) return refuse(reply, refusal);
    const fields = [...subscribed].map((name) => ({ name, version: 'v26.0' }));
    const callback_url = context.callbackUrl;
    return { data: [{ object: OBJECT, callback_url, active: true, fields }].slice(0, fields.length) };
  });
  app.post<SubscriptionRoute>(path, async (request, reply) => {
    const refusal = refusalOf(request) ?? objectProblem(request.body?.object);
    if (refusal !== null) return refuse(reply, refusal);
    for (const field of [request.body?.fields ?? []].flat().flatMap(namesIn)) subscribed.add(field);
    return { success: true };
  });
  app.delete<SubscriptionRoute>(path, async (request, reply) => {
    const { object, fields } = request.query;
    const refusal = refusalOf(request) ?? objectProblem(object);
    if (refusal !== null) return refuse(reply, refusal);
    for (const field of fields === undefined ? [...subscribed] : namesIn(fields)) subscribed.delete(field);
    return { success: true };
  });
}

/** GET /{version}/{account}/subscribed_apps: the one app, unless a WABA of the dialog is not subscribed to it yet. */
function registerSubscribedApps(app: FastifyInstance, context: UpstreamContext): void {
  app.get<GraphObjectRoute>(`${GRAPH_OBJECT_PATH}/subscribed_apps`, async (request, reply) => {
    const { id } = request.params;
    if (!context.phones.hasWaba(id)) {
      const { status, body } = objectMissing(id);
      return reply.code(status).send(body);
    }
    const subscription = context.registrations.subscriptionOf(id);
    if (subscription === null) return { data: [] };
    const { overrideCallbackUrl: address } = subscription;
    const override = address === null ? {} : { override_callback_uri: address };
    return { data: [{ whatsapp_business_api_data: APP, ...override }] };
  });
}

const namesIn = (text: string) => text.split(',').map((name) => name.trim());

function objectProblem(object: string | undefined): GraphFailure | null {
  return object === OBJECT ? null : invalidParameter(100, `object must be ${OBJECT}`);
}
