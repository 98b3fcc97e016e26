import { randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { NumberSettings } from '../account-objects.ts';
import { userIdOf } from '../payloads/customer-identity.ts';
import type { JsonObject } from '../payloads/webhook-body.ts';
import type { UpstreamContext } from '../upstream-context.ts';
import { answerFault } from './fault-answer.ts';
import { invalidParameter, objectMissing, refusedCall } from './graph-failure.ts';
import { GRAPH_OBJECT_PATH, type GraphObjectRoute, graphPage } from './graph-page.ts';
import { pickFields } from './phone-number-object.ts';

type NumberRequest = FastifyRequest<GraphObjectRoute & { Body: JsonObject | undefined }>;
type Handler = (settings: NumberSettings, request: NumberRequest, reply: FastifyReply) => unknown;

const SUCCESS = { success: true };

/** What a business sets for a number: profile, blocked users, QR codes, automation, commerce, the key of its flows. */
export function registerNumberEdges(app: FastifyInstance, context: UpstreamContext): void {
  const at = (method: 'GET' | 'POST' | 'DELETE', edge: string, handle: Handler) => {
    app.route<GraphObjectRoute & { Body: JsonObject | undefined }>({
      method,
      url: `${GRAPH_OBJECT_PATH}/${edge}`,
      exposeHeadRoute: false,
      handler: (request, reply) => {
        const { id } = request.params;
        if (context.phones.find(id) === undefined) return refuse(reply, objectMissing(id));
        return handle(context.objects.numberSettings(id), request as NumberRequest, reply);
      },
    });
  };
  settingsEdge(at, 'whatsapp_business_profile', 'profile');
  settingsEdge(at, 'whatsapp_commerce_settings', 'commerce');
  settingsEdge(at, 'whatsapp_business_encryption', 'encryption');
  at('GET', 'conversational_automation', ({ automation }, { params, query }) =>
    pickFields({ ...automation, id: params.id }, query.fields),
  );
  at('POST', 'conversational_automation', ({ automation }, { body }) => {
    Object.assign(automation, body);
    return SUCCESS;
  });
  at('POST', 'thread_control', (_settings, { body, params }, reply) =>
    threadControl(context, params.id, body, reply),
  );
  calling(at, context);
  username(at);
  at('GET', 'routing_roles', (_settings, { params }) => {
    const { roles, isStandby } = context.routing.of(params.id) ?? { roles: [], isStandby: false };
    return { roles, is_standby: isStandby };
  });
  blockedUsers(at, context);
  qrCodes(at);
}

/** Only the escalation partner may take; whom upstream refuses the other actions, its pages do not say. */
async function threadControl(
  context: UpstreamContext,
  id: string,
  body: JsonObject | undefined,
  reply: FastifyReply,
): Promise<unknown> {
  const fault = context.faults.take('thread_control', id);
  if (fault !== undefined && (await answerFault(context, reply, fault, { id }))) return reply;
  const isForOne = (body?.to === undefined) !== (body?.recipient === undefined);
  if (!isForOne || !['take', 'pass', 'release'].includes(String(body?.action))) {
    return refuse(reply, invalidParameter(100, 'Give to or recipient, and an action.'));
  }
  if (body?.action === 'take' && !context.routing.may(id, 'escalation')) {
    return refuse(reply, refusedCall(2494191, 'Only the escalation partner may take control of a thread.'));
  }
  return { messaging_product: 'whatsapp' };
}

type At = (method: 'GET' | 'POST' | 'DELETE', edge: string, handle: Handler) => void;

function refuse(reply: FastifyReply, { status, body }: ReturnType<typeof objectMissing>): FastifyReply {
  return reply.code(status).send(body);
}

/** A list of one entry, which a POST changes by its body or its query. */
function settingsEdge(at: At, edge: string, name: 'profile' | 'commerce' | 'encryption'): void {
  at('GET', edge, (settings, { query }) => {
    const { id: _none, ...shown } = pickFields(settings[name], query.fields);
    return { data: Object.keys(settings[name]).length === 0 ? [] : [shown] };
  });
  at('POST', edge, (settings, { body, query }) => {
    Object.assign(settings[name], body, queryMembers(query));
    if (name === 'encryption') settings.encryption.business_public_key_signature_status = 'VALID';
    return SUCCESS;
  });
}

const limitOf = (most: number) => [{ time_period: 'PT24H', max_allowed: most, current_usage: 0 }];

/** Signalling only: a call that the business makes rings for ever. */
function calling(at: At, context: UpstreamContext): void {
  at('GET', 'settings', (settings) => ({ calling: settings.calling }));
  at('POST', 'settings', (settings, { body }) => {
    Object.assign(settings.calling, body?.calling);
    return SUCCESS;
  });
  at('GET', 'call_permissions', () => ({
    messaging_product: 'whatsapp',
    permission: { status: 'no_permission' },
    actions: [
      { action_name: 'send_call_permission_request', can_perform_action: true, limits: limitOf(1) },
      { action_name: 'start_call', can_perform_action: false, limits: limitOf(5) },
    ],
  }));
  at('POST', 'calls', (_settings, { body, params }, reply) => {
    if (!context.routing.may(params.id, 'calls')) {
      return refuse(reply, refusedCall(138038, 'Only the Call primary may do this.'));
    }
    if (typeof body?.action !== 'string') return refuse(reply, invalidParameter(131008, 'action is missing'));
    const id = `wacid.${randomBytes(24).toString('base64url')}`;
    // No page has `success` here; pywa takes no answer without it.
    const made = { messaging_product: 'whatsapp', calls: [{ id }], ...SUCCESS };
    return body.action === 'connect' ? made : SUCCESS;
  });
}

function username(at: At): void {
  at('GET', 'username', (settings) =>
    settings.username === null ? { status: 'reserved' } : { username: settings.username, status: 'approved' },
  );
  at('POST', 'username', (settings, { body }, reply) => {
    const name = body?.username;
    if (typeof name !== 'string' || !/^[a-z0-9._]{3,35}$/i.test(name)) {
      return refuse(reply, invalidParameter(100, 'Param username is not valid.'));
    }
    settings.username = name;
    return { status: 'approved' };
  });
  at('DELETE', 'username', (settings) => {
    settings.username = null;
    return SUCCESS;
  });
  at('GET', 'username_suggestions', () => ({ data: [{ username_suggestions: ['fixture.store'] }] }));
}

function queryMembers(query: GraphObjectRoute['Querystring']): JsonObject {
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => [
      name,
      /^(true|false)$/.test(value) ? value === 'true' : value,
    ]),
  );
}

function blockedUsers(at: At, context: UpstreamContext): void {
  const change = (list: 'added_users' | 'removed_users') => {
    const handle: Handler = ({ blocked }, { body, params }, reply) => {
      const named = Array.isArray(body?.block_users) ? (body.block_users as JsonObject[]) : [];
      const inputs = named
        .map(({ user, user_id }) => String(user ?? user_id ?? ''))
        .filter((one) => one !== '');
      if (inputs.length === 0) return refuse(reply, invalidParameter(131008, 'block_users is missing'));
      for (const input of inputs) blocked[list === 'added_users' ? 'add' : 'delete'](input);
      const users = inputs.map((input) => ({ input, ...identityOf(input, params.id) }));
      return { messaging_product: 'whatsapp', block_users: { [list]: users } };
    };
    return handle;
  };
  const identityOf = (input: string, phoneNumberId: string): JsonObject => {
    const phone = context.phones.find(phoneNumberId);
    if (!/\d/.test(input) || /^[A-Z]{2}\./.test(input) || phone === undefined) return { user_id: input };
    const waId = input.replace(/\D/g, '');
    return { wa_id: waId, user_id: userIdOf(waId, phone) };
  };
  at('POST', 'block_users', change('added_users'));
  at('DELETE', 'block_users', change('removed_users'));
  at('GET', 'block_users', ({ blocked }, { params, query, host, url }) => {
    const users = [...blocked].map((input) => ({
      messaging_product: 'whatsapp',
      input,
      ...identityOf(input, params.id),
    }));
    return graphPage(users, query, `http://${host}${url}`);
  });
}

function qrCodes(at: At): void {
  at('GET', 'message_qrdls', ({ codes }, { query, host, url }) => {
    const asked = [...codes.values()].filter(({ code }) => query.code === undefined || code === query.code);
    return graphPage(asked, query, `http://${host}${url}`);
  });
  at('POST', 'message_qrdls', ({ codes }, { body, query }, reply) => {
    const { prefilled_message: text, code: known, generate_qr_image: image } = { ...query, ...body };
    if (typeof text !== 'string')
      return refuse(reply, invalidParameter(131008, 'prefilled_message is missing'));
    const code = typeof known === 'string' ? known : randomBytes(7).toString('hex').toUpperCase();
    const made = {
      code,
      prefilled_message: text,
      deep_link_url: `https://wa.me/message/${code}`,
      ...(typeof image === 'string' && {
        qr_image_url: `https://example.com/qr/${code}.${image.toLowerCase()}`,
      }),
    };
    codes.set(code, made);
    return made;
  });
  at('GET', 'message_qrdls/:code', ({ codes }, request, reply) => {
    const code = codeOf(request);
    const found = codes.get(code);
    return found === undefined ? refuse(reply, objectMissing(code)) : { data: [found] };
  });
  const remove: Handler = ({ codes }, request, reply) => {
    const code = codeOf(request);
    return codes.delete(code) ? SUCCESS : refuse(reply, objectMissing(code));
  };
  at('DELETE', 'message_qrdls/:code', remove);
  at('DELETE', 'message_qrdls', remove);
}

function codeOf({ params, query }: NumberRequest): string {
  return (params as { code?: string }).code ?? query.code ?? '';
}
