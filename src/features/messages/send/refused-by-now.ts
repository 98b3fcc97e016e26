import type { Database } from '../../../platform/postgres/database.ts';
import type { findTemplate } from '../../accounts/templates.ts';
import { isWindowOpen } from '../conversations/conversations.ts';
import type { SendError } from './send-error.ts';
import { lookAtTemplate } from './sent-template.ts';
import { typeOf } from './upstream-payload.ts';

/**
 * Why upstream would refuse a scheduled message by now: its template was stopped or changed, or the customer service window of its conversation has closed.
 * Of groups, and of Direct Send, upstream decides. Null: it may take it.
 */
export async function refusedByNow(
  database: Database,
  { wabaId, conversationId, payloadJson }: { wabaId: string; conversationId: string; payloadJson: string },
  find?: typeof findTemplate,
): Promise<SendError | null> {
  const message = JSON.parse(payloadJson) as Record<string, unknown>;
  if (typeOf(message) === 'template') {
    const { problem } = await lookAtTemplate(database, wabaId, message, find);
    return problem === null ? null : { code: problem.code, message: problem.message, upstream: null };
  }
  if (message.recipient_type === 'group' || message.category !== undefined) return null;
  if (await isWindowOpen(database, wabaId, conversationId)) return null;
  return {
    code: 'window_closed',
    message: 'The customer service window had closed by the time of the message.',
    upstream: null,
  };
}
