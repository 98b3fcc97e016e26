import type { FastifyInstance } from 'fastify';
import type { SandboxGroup } from '../group-register.ts';
import { buildGroupChange, GROUP_ACTIONS, type GroupAction } from '../payloads/group-change.ts';
import { serializeWebhookBody } from '../payloads/webhook-body.ts';
import type { UpstreamContext } from '../upstream-context.ts';
import { ControlError, phoneOf, sendToIngress } from './control-error.ts';

type NewGroup = { phoneNumberId?: string; subject: string; description?: string; members?: string[] };
type Change = { action: Exclude<GroupAction, 'create'>; members?: string[]; subject?: string };

const members = { type: 'array', maxItems: 100, items: { type: 'string', pattern: '^\\d{1,32}$' } } as const;
const subject = { type: 'string', minLength: 1, maxLength: 128 } as const;

const newGroupSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['subject'],
  properties: {
    phoneNumberId: { type: 'string' },
    subject,
    members,
    description: { type: 'string', maxLength: 2_048 },
  },
} as const;

const changeSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['action'],
  properties: { action: { enum: GROUP_ACTIONS.filter((action) => action !== 'create') }, members, subject },
} as const;

/** /sandbox/groups makes groups of a number; their members join and leave; each change is reported as the platform does. */
export function registerGroupRoutes(app: FastifyInstance, context: UpstreamContext): void {
  app.get('/sandbox/groups', async () => ({ data: context.groups.all() }));
  app.post<{ Body: NewGroup }>('/sandbox/groups', { schema: { body: newGroupSchema } }, async ({ body }) => {
    const group = context.groups.create(phoneOf(context, body), body);
    const answer = await report(context, 'create', group, []);
    if (body.members !== undefined) await join(context, group, body.members);
    return { id: group.id, to: group.phone, group, ...answer };
  });
  app.post<{ Params: { id: string }; Body: Change }>(
    '/sandbox/groups/:id',
    { schema: { body: changeSchema } },
    async ({ params, body }) => {
      const group = context.groups.find(params.id);
      if (group === undefined) {
        throw new ControlError(
          404,
          'unknown_group',
          `No group ${params.id}; make it with POST /sandbox/groups.`,
        );
      }
      return { id: group.id, to: group.phone, group, ...(await change(context, group, body)) };
    },
  );
}

async function change(
  context: UpstreamContext,
  group: SandboxGroup,
  { action, members = [], subject }: Change,
) {
  switch (action) {
    case 'join':
      return await join(context, group, members);
    case 'leave':
      group.members = group.members.filter((waId) => !members.includes(waId));
      return await report(context, action, group, members);
    case 'rename':
      group.subject = subject ?? group.subject;
      return await report(context, action, group, []);
    case 'suspend':
    case 'release':
      group.state = action === 'suspend' ? 'suspended' : 'active';
      return await report(context, action, group, []);
    case 'delete':
      context.groups.remove(group.id);
      return await report(context, action, group, []);
  }
}

async function join(context: UpstreamContext, group: SandboxGroup, members: readonly string[]) {
  group.members = [...new Set([...group.members, ...members])];
  return await report(context, 'join', group, members);
}

async function report(
  context: UpstreamContext,
  action: GroupAction,
  group: SandboxGroup,
  waIds: readonly string[],
) {
  const body = buildGroupChange(action, group, waIds, Date.now());
  return { ...(await sendToIngress(context, serializeWebhookBody(body))), body };
}
