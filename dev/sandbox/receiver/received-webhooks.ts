/** One webhook as it arrived. */
export type ReceivedWebhook = {
  /** Counts from 1 in order of arrival. */
  n: number;
  /** The last part of /webhook/:name; empty for /webhook. */
  name: string;
  receivedAt: string;
  /** When the answer was given; null like `status`. */
  answeredAt: string | null;
  webhookId: string;
  headers: Record<string, string>;
  /** The body as text; `bodyBase64` has the exact bytes. */
  body: string;
  bodyBase64: string;
  verified: boolean;
  /** True when a webhook of this id was answered 2xx before. */
  duplicate: boolean;
  /** The answered HTTP status; null when no answer was given (yet). */
  status: number | null;
  /** How the receiver was told to behave; null for those with a wrong signature. */
  mode: string | null;
};

const MAX_KEPT = 20_000;
const MAX_IDS = 200_000;

/** What one receiver has seen. */
export type ReceivedWebhooks = {
  add: (
    webhook: Omit<ReceivedWebhook, 'n' | 'duplicate' | 'status' | 'answeredAt' | 'mode'>,
  ) => ReceivedWebhook;
  /** Notes the answer; a 2xx makes later webhooks of this id duplicates. */
  answered: (webhook: ReceivedWebhook, status: number) => void;
  /** Those with a number above n. */
  since: (n: number) => ReceivedWebhook[];
  /** The newest of one name, the newest first. */
  newest: (name: string, limit: number) => ReceivedWebhook[];
  find: (n: number) => ReceivedWebhook | undefined;
  /** How many of one name there are. */
  counts: (name: string) => { received: number; verified: number; duplicates: number; failed: number };
  lastNumber: () => number;
  clear: () => number;
};

function countsOf(webhooks: readonly ReceivedWebhook[]) {
  const count = (is: (webhook: ReceivedWebhook) => boolean) => webhooks.filter(is).length;
  return {
    received: webhooks.length,
    verified: count(({ verified }) => verified),
    duplicates: count(({ duplicate }) => duplicate),
    failed: count(({ status, mode }) => (status === null ? mode !== 'slow' && mode !== null : status >= 300)),
  };
}

/** Creates an empty list that keeps the newest 20,000. */
export function createReceivedWebhooks(): ReceivedWebhooks {
  let kept: ReceivedWebhook[] = [];
  const acceptedIds = new Set<string>();
  let lastNumber = 0;

  const remember = (id: string) => {
    acceptedIds.add(id);
    const [oldest] = acceptedIds;
    if (acceptedIds.size > MAX_IDS && oldest !== undefined) {
      acceptedIds.delete(oldest);
    }
  };

  return {
    add: (webhook) => {
      lastNumber += 1;
      const duplicate = webhook.verified && acceptedIds.has(`${webhook.name}/${webhook.webhookId}`);
      const received = { n: lastNumber, ...webhook, duplicate, status: null, answeredAt: null, mode: null };
      kept.push(received);
      // Cut in large steps, because every cut copies the list.
      kept = kept.length > MAX_KEPT + 1000 ? kept.slice(-MAX_KEPT) : kept;
      return received;
    },
    answered: (webhook, status) => {
      webhook.status = status;
      webhook.answeredAt = new Date().toISOString();
      if (status >= 200 && status < 300) {
        remember(`${webhook.name}/${webhook.webhookId}`);
      }
    },
    since: (n) => kept.filter((webhook) => webhook.n > n),
    newest: (name, limit) => {
      const found: ReceivedWebhook[] = [];
      for (let at = kept.length - 1; at >= 0 && found.length < limit; at -= 1) {
        const webhook = kept[at];
        if (webhook !== undefined && webhook.name === name) {
          found.push(webhook);
        }
      }
      return found;
    },
    find: (n) => kept.find((webhook) => webhook.n === n),
    counts: (name) => countsOf(kept.filter((webhook) => webhook.name === name)),
    lastNumber: () => lastNumber,
    clear: () => {
      const count = kept.length;
      kept = [];
      return count;
    },
  };
}
