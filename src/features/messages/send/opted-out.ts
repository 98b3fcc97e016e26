import type { Database } from '../../../platform/postgres/database.ts';
import { RequestError } from '../../../platform/request-input.ts';
import { type OptOutMark, optOutsOfConversations } from '../../customers/opt-outs.ts';
import { isWindowOpen } from '../conversations/conversations.ts';
import type { SendPath } from './outbound-messages.ts';
import type { SendError } from './send-error.ts';
import { typeOf } from './upstream-payload.ts';

/** The customer wants no such message, and nothing of it was stored. */
export class RecipientOptedOut extends RequestError {
  readonly mark: OptOutMark;
  constructor(mark: OptOutMark) {
    const what = mark.scope === 'all' ? 'messages' : 'marketing messages';
    super('recipient_opted_out', `The customer wants no ${what} since ${mark.since.toISOString()}.`);
    this.name = 'RecipientOptedOut';
    this.mark = mark;
  }
}

/** Whether it is marketing depends on the category of its template, which has to be looked up first. */
export class CategoryNeeded extends Error {}

type Sent = {
  wabaId: string;
  conversationId: string;
  message: Readonly<Record<string, unknown>>;
  upstreamPath: SendPath;
  /** Of its template; undefined: not looked up yet, null: upstream decides. */
  category: string | null | undefined;
};

/**
 * Why a message that waited is not sent after all: its customer ended it meanwhile. `findCategory` is asked for a template to
 * a customer who wants no marketing. Null: it is sent.
 */
export async function endedMeanwhile(
  database: Database,
  { payloadJson, ...sent }: Omit<Sent, 'message' | 'category'> & { payloadJson: string },
  findCategory: (template: unknown) => Promise<string | null>,
): Promise<SendError | null> {
  const message = JSON.parse(payloadJson) as Sent['message'];
  const refuse = async (category?: string | null) => {
    try {
      await refuseOptedOut(database, { ...sent, message, category });
      return null;
    } catch (error) {
      if (!(error instanceof RecipientOptedOut)) throw error;
      return { code: 'recipient_opted_out', message: error.message, upstream: null } as const;
    }
  };
  try {
    return await refuse();
  } catch (error) {
    if (!(error instanceof CategoryNeeded)) throw error;
    return await refuse(await findCategory(message.template));
  }
}

/** Throws RecipientOptedOut; CategoryNeeded for a customer who wants no marketing. */
export async function refuseOptedOut(database: Database, sent: Sent): Promise<void> {
  const { wabaId, conversationId } = sent;
  const marks = await optOutsOfConversations(database, wabaId, [conversationId]);
  await refuseMarked(database, sent, marks.get(conversationId));
}

/** As `refuseOptedOut`, for what is known of the customer. */
export async function refuseMarked(
  database: Database,
  sent: Sent,
  mark: OptOutMark | undefined,
): Promise<void> {
  if (mark === undefined) return;
  const { wabaId, conversationId } = sent;
  if (mark.scope === 'all' && !(await isWindowOpen(database, wabaId, conversationId))) {
    throw new RecipientOptedOut(mark);
  }
  if (isMarketing(sent)) throw new RecipientOptedOut(mark);
}

function isMarketing({ message, upstreamPath, category }: Sent): boolean {
  const isTemplate = typeOf(message) === 'template';
  if (upstreamPath === 'marketing_messages') return true;
  if (isTemplate && category === undefined) throw new CategoryNeeded();
  const named = isTemplate ? category : message.category;
  return typeof named === 'string' && named.toUpperCase() === 'MARKETING';
}
