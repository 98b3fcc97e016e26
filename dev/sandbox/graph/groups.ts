import { randomBytes } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { SandboxGroup } from '../group-register.ts';
import { buildGroupChange, type GroupAction } from '../payloads/group-change.ts';
import { serializeWebhookBody } from '../payloads/webhook-body.ts';
import type { UpstreamContext } from '../upstream-context.ts';
import { invalidParameter, objectMissing } from './graph-failure.ts';
import { GRAPH_OBJECT_PATH, type GraphObjectRoute, graphPage } from './graph-page.ts';

type GroupBody = { subject?: unknown; description?: unknown };

/** /{version}/{phone}/groups makes and lists groups; what comes of it is told by a webhook, as the platform does. */
export function registerGroups(app: FastifyInstance, context: UpstreamContext): void {
  const path = `${GRAPH_OBJECT_PATH}/groups`;
  app.post<GraphObjectRoute & { Body: GroupBody }>(path, async (request, reply) => {
    const phone = context.phones.find(request.params.id);
    const { subject, description } = request.body ?? {};
    if (phone === undefined || typeof subject !== 'string' || subject.trim() === '') {
      const { status, body } =
        phone === undefined
          ? objectMissing(request.params.id)
          : invalidParameter(131008, 'subject is missing');
      return reply.code(status).send(body);
    }
    const group = context.groups.create(phone, {
      subject: subject.trim().slice(0, 128),
      ...(typeof description === 'string' && { description }),
    });
    tell(context, 'create', group);
    return requested();
  });
  app.get<GraphObjectRoute>(path, async (request) => {
    const groups = context.groups.ofNumber(request.params.id);
    const { data, paging } = graphPage(
      groups.map(listed),
      request.query,
      new URL(request.url, 'http://x').href,
    );
    return { data: { groups: data }, ...(paging === undefined ? {} : { paging }) };
  });
}

/** What the platform says of a group that is asked for by its id. */
export function groupObject(group: SandboxGroup): Record<string, unknown> {
  const { id, subject, description, state, createdAt, members } = group;
  return {
    messaging_product: 'whatsapp',
    id,
    subject,
    description,
    suspended: state === 'suspended',
    creation_timestamp: Math.floor(Date.parse(createdAt) / 1_000),
    total_participant_count: members.length,
    participants: members.map((waId) => ({ wa_id: waId })),
  };
}

/** Deletes a group; undefined: there is none. */
export function deleteGroup(context: UpstreamContext, id: string): Record<string, unknown> | undefined {
  const group = context.groups.find(id);
  if (group === undefined) return undefined;
  context.groups.remove(id);
  tell(context, 'delete', group);
  return requested();
}

function listed({ id, subject, createdAt }: SandboxGroup): Record<string, unknown> {
  return { id, subject, created_at: Math.floor(Date.parse(createdAt) / 1_000) };
}

function requested(): Record<string, unknown> {
  return { messaging_product: 'whatsapp', request_id: randomBytes(8).toString('hex') };
}

/** Best effort: a sandbox whose service is away has nobody to tell. */
function tell(context: UpstreamContext, action: GroupAction, group: SandboxGroup): void {
  const body = serializeWebhookBody(buildGroupChange(action, group, [], Date.now()));
  context.sender.send(body).catch(() => undefined);
}
