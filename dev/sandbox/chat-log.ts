import type { JsonObject } from './payloads/webhook-body.ts';

/** What happened to a message, and when. */
type ChatState = { state: string; at: string };

/** One message as customer and business see it in their chat. */
export type ChatEntry = {
  /** Counts from 1 in the order of the chat. */
  n: number;
  at: string;
  side: 'customer' | 'business';
  /** The wamid; the reference of a payment. */
  id: string;
  phoneNumberId: string;
  /** The customer's phone number in digits, or the user id of one without. */
  customer: string;
  customerName: string | null;
  /** What the platform sends or took: a message of its webhooks, the body of a send, a payment's status object. */
  message: JsonObject;
  /**
   * All states with their times, the newest last. Of a customer's: sending, then delivered or refused, then read.
   * Of the business's: accepted, then what its statuses say.
   */
  states: ChatState[];
};

type NewEntry = Omit<ChatEntry, 'n' | 'at' | 'states'>;

/** The chats of one server. */
export type ChatLog = {
  add: (entry: NewEntry, state: string) => ChatEntry;
  /** Notes a state of the message with this id; others than known ids are ignored. */
  note: (id: string, state: string) => void;
  /** The newest of these numbers, the oldest first. */
  newest: (phoneNumberIds: ReadonlySet<string>, limit: number) => ChatEntry[];
};

const MAX_KEPT = 5000;

/** Creates an empty log that keeps the newest 5,000 messages. */
export function createChatLog(now: () => number): ChatLog {
  let kept: ChatEntry[] = [];
  const byId = new Map<string, ChatEntry>();
  let lastNumber = 0;
  const timeText = () => new Date(now()).toISOString();

  const forgetOldest = () => {
    // Cut in large steps, because every cut copies the list.
    if (kept.length <= MAX_KEPT + 1000) {
      return;
    }
    for (const { id } of kept.slice(0, -MAX_KEPT)) {
      byId.delete(id);
    }
    kept = kept.slice(-MAX_KEPT);
  };

  return {
    add: (fields, state) => {
      lastNumber += 1;
      const at = timeText();
      const entry = { n: lastNumber, at, ...fields, states: [{ state, at }] };
      kept.push(entry);
      byId.set(entry.id, entry);
      forgetOldest();
      return entry;
    },
    note: (id, state) => {
      byId.get(id)?.states.push({ state, at: timeText() });
    },
    newest: (phoneNumberIds, limit) => {
      const found: ChatEntry[] = [];
      for (let at = kept.length - 1; at >= 0 && found.length < limit; at -= 1) {
        const entry = kept[at];
        if (entry !== undefined && phoneNumberIds.has(entry.phoneNumberId)) {
          found.push(entry);
        }
      }
      return found.reverse();
    },
  };
}
