import { Type } from 'typebox';
import { noteThreads, type StoredOwner } from '../../features/customers/threads.ts';
import { findConversation } from '../../features/messages/conversations/conversations.ts';
import { findThread, type Thread } from '../../features/messages/conversations/thread.ts';
import { GraphError } from '../../platform/graph/graph-error.ts';
import { phoneForUpstream } from '../../platform/phone-number.ts';
import { ApiError, notFound } from '../errors/api-error.ts';
import type { ExternalContext } from '../external/external-app.ts';
import { closed, named, nullable, objectPath } from '../external/schema-kit.ts';
import { callUpstream } from '../external/upstream-calls.ts';
import { restOperation } from '../operations/operation.ts';
import { ThreadShape } from './conversations.ts';

/** Who has a conversation after an action that upstream accepted. */
const OWNERS = { take: 'us', pass: 'other', release: 'none' } as const satisfies Record<string, StoredOwner>;

export type ThreadAction = keyof typeof OWNERS;

export const THREAD_ACTIONS = Object.keys(OWNERS) as ThreadAction[];

export const MAX_THREAD_METADATA_CHARS = 2_000;

export type ThreadControl = {
  phoneNumberId: string;
  /** Null: no conversation with this customer is known here. */
  conversationId: string | null;
  action: ThreadAction;
  /** To whom it is passed, if the call says so. */
  role: string | null;
  /** What upstream gets. */
  body: Readonly<Record<string, unknown>>;
};

type Controls = Pick<ExternalContext, 'database' | 'accounts' | 'upstream'>;

/**
 * Takes, passes or releases a conversation: one call of upstream, never repeated. Upstream reports none of it back, so the owner is noted
 * here; it is unknown after a call without a response. Throws ApiError.
 */
export async function controlThread(
  context: Controls,
  wabaId: string,
  { phoneNumberId, conversationId, action, role, body }: ThreadControl,
): Promise<{ answer: Record<string, unknown>; thread: Thread | null }> {
  const { database } = context;
  const known = async () => (conversationId === null ? null : findThread(database, wabaId, conversationId));
  const before = await known();
  const note = async (owner: StoredOwner, newRole: string | null = null) => {
    if (conversationId === null) return;
    // Behind all that it follows, also by another clock than ours.
    const since = new Date(Math.max(Date.now(), (before?.since.getTime() ?? 0) + 1));
    await noteThreads(database, [{ conversationId, owner, role: newRole, since }]);
  };
  const call = { phoneNumberId, body };
  const answer = await callUpstream(context, wabaId, (client, token) =>
    client.controlThread({ ...call, token }),
  ).catch(async (error: unknown) => {
    if (!(error instanceof ApiError) || !hadNoAnswer(error.cause)) throw error;
    await note('unknown');
    throw new ApiError('outcome_unknown', { cause: error });
  });
  await note(OWNERS[action], action === 'pass' ? role : null);
  return { answer, thread: await known() };
}

/** Whether upstream may have done it: a proxy that lost its upstream answers without an error of upstream's form. */
function hadNoAnswer(cause: unknown): boolean {
  if (!(cause instanceof GraphError) || !cause.transient || cause.code !== null) return false;
  return cause.httpStatus === null || cause.httpStatus >= 500;
}

export const controlThreadOperation = restOperation({
  id: 'controlThread',
  method: 'POST',
  path: '/api/external/conversations/:id/thread',
  scope: 'send',
  summary: 'Take, pass or release a conversation',
  description:
    'Of a number that several responders share. `take` is for the escalation partner only; `pass` gives the conversation to the ' +
    'escalation partner, who sees `metadata`; after `release` upstream chooses who receives the next message. Upstream is called once and ' +
    'never again: after `outcome_unknown` the owner is `unknown` until upstream reports one.',
  tag: 'Conversations',
  errors: [
    'conversation_of_group',
    'upstream_refused',
    'access_token_missing',
    'upstream_unavailable',
    'outcome_unknown',
  ],
  requests: {
    take: { action: 'take' },
    pass: { action: 'pass', metadata: 'The customer asks for a refund' },
    release: { action: 'release' },
  },
  ...objectPath('The id of the conversation.', '42'),
  body: closed({
    action: Type.Enum(THREAD_ACTIONS),
    metadata: Type.Optional(Type.String({ maxLength: MAX_THREAD_METADATA_CHARS })),
  }),
  answers: {
    200: {
      schema: named('ControlledThread', { thread: nullable(ThreadShape) }),
      description: 'Upstream has done it. `thread` is as that of the conversation: null after `release`.',
    },
  },
  run: async (call, { id, action, metadata }) => {
    const { database, wabaId } = call;
    const conversation = await findConversation(database, wabaId, id);
    if (conversation === null) throw notFound();
    const { id: conversationId, phoneNumberId, waId, userId } = conversation;
    if (waId === null && userId === null) throw new ApiError('conversation_of_group');
    const customer = waId === null ? { recipient: userId } : { to: phoneForUpstream(waId) };
    const body = { ...customer, action, ...(metadata !== undefined && { metadata }) };
    const control = { phoneNumberId, conversationId, action, role: null, body };
    const { thread } = await controlThread(call, wabaId, control);
    return { thread };
  },
});
