import type { FastifyRequest } from 'fastify';
import { customerReferenceOf } from '../../features/customers/customer-reference.ts';
import { listConversations } from '../../features/messages/conversations/conversations.ts';
import { isControlMember } from '../../platform/graph/control-members.ts';
import { isMembers, membersOf } from '../../platform/json/json-members.ts';
import { phoneForUpstream } from '../../platform/phone-number.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { accountOf, SCOPES } from '../keys/api-key-auth.ts';
import {
  controlThread,
  MAX_THREAD_METADATA_CHARS,
  THREAD_ACTIONS,
  type ThreadControl,
} from '../messages/thread-control.ts';
import { wrongParameter } from './facade-error.ts';
import { FACADE_ROOTS, type ObjectRoute, requireNumber } from './facade-paths.ts';
import { asUpstreamReads } from './loose-content.ts';

type ThreadRoute = ObjectRoute & { Body: unknown };

/** POST /{phone number id}/thread_control: passed on as it is; who has the conversation then is noted here too. */
export function facadeThreads(app: ExternalApp, context: ExternalContext): void {
  const options = {
    config: SCOPES.graph,
    onRequest: async (request: FastifyRequest) => {
      const { id } = request.params as ThreadRoute['Params'];
      await requireNumber(context.database, accountOf(request).wabaId, id);
    },
  };
  for (const root of FACADE_ROOTS) {
    app.post<ThreadRoute>(`${root}/:id/thread_control`, options, async (request) => {
      const { wabaId } = accountOf(request);
      const control = await controlOf(context, wabaId, request.params.id, request.body);
      return (await controlThread(context, wabaId, control)).answer;
    });
  }
}

/** Throws FacadeError for a body that is no such call. */
async function controlOf(
  { database }: ExternalContext,
  wabaId: string,
  phoneNumberId: string,
  given: unknown,
): Promise<ThreadControl> {
  if (!isMembers(given)) throw wrongParameter('The body must be a JSON object.');
  const members = Object.entries(given).filter(([, value]) => value !== null);
  const body = Object.fromEntries(members.map(([name, value]) => [name, asUpstreamReads(name, value)]));
  const foreign = Object.keys(body).find((name) => name !== 'metadata' && isControlMember(name));
  if (foreign !== undefined) throw wrongParameter(`The member ${foreign} is not passed on.`);
  const { to, recipient, metadata } = body;
  const action = THREAD_ACTIONS.find((one) => one === body.action);
  if (action === undefined) throw wrongParameter(`action: Give one of ${THREAD_ACTIONS.join(', ')}.`);
  if (metadata !== undefined && String(metadata).length > MAX_THREAD_METADATA_CHARS) {
    throw wrongParameter(`metadata: The parameter has up to ${MAX_THREAD_METADATA_CHARS} characters.`);
  }
  const customer = customerReferenceOf(String(to ?? recipient));
  const isOne = (to === undefined) !== (recipient === undefined);
  if (!isOne || customer === null || 'phone' in customer !== (to !== undefined)) {
    throw wrongParameter('Give a phone number in to, or a user id in recipient.');
  }
  const filter = { phoneNumberId, customer, since: null };
  const [conversation] = await listConversations(database, wabaId, filter, {
    order: 'desc',
    after: null,
    limit: 1,
  });
  const { target_role: role } = membersOf(body.control_pass);
  return {
    phoneNumberId,
    conversationId: conversation?.id ?? null,
    action,
    role: typeof role === 'string' ? role.slice(0, 64) : null,
    body: { ...body, ...(to !== undefined && { to: phoneForUpstream(String(to)) }) },
  };
}
