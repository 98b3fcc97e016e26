import type { FilledWaba } from './fill-messages.ts';

/** What is asked, how, and what the answer has to be worth. */
export type ReadScenario = {
  name: string;
  about: string;
  /** So many requests per second at planned times; null: as many as go over `connections`. */
  ratePerSecond: number | null;
  connections: number;
  /** The path of request `n`. */
  path: (waba: FilledWaba, n: number) => string;
  target?: { p95Ms: number } | { perSecond: number };
};

const MESSAGES_PER_SECOND = 50;
const CONVERSATIONS = '/api/external/conversations';

/** Any conversation but the long one, in an order that no cache foresees. */
function anyConversation({ longConversationId, conversations }: FilledWaba, n: number): string {
  return String(
    BigInt(longConversationId) + 1n + (BigInt(Math.imul(n, 2654435761) >>> 0) % BigInt(conversations - 1)),
  );
}

const paced = { ratePerSecond: MESSAGES_PER_SECOND, connections: 64 };
const flood = { ratePerSecond: null, connections: 16 };

export const READ_SCENARIOS: readonly ReadScenario[] = [
  {
    name: 'messages',
    about: '50 pages of messages per second, each tenth of the long conversation',
    ...paced,
    path: (waba, n) =>
      `${CONVERSATIONS}/${n % 10 === 0 ? waba.longConversationId : anyConversation(waba, n)}/messages`,
    target: { p95Ms: 15 },
  },
  {
    name: 'messages-100',
    about: '50 pages of 100 messages of the long conversation per second',
    ...paced,
    path: (waba) => `${CONVERSATIONS}/${waba.longConversationId}/messages?limit=100`,
  },
  {
    name: 'messages-filtered',
    about: '50 pages per second of the long conversation, by type, direction and time',
    ...paced,
    path: (waba) =>
      `${CONVERSATIONS}/${waba.longConversationId}/messages?type=image&direction=inbound&order=asc&since=` +
      new Date(Date.now() - 3_600_000).toISOString(),
  },
  {
    name: 'conversation',
    about: '50 single conversations per second, each tenth the long one',
    ...paced,
    path: (waba, n) =>
      `${CONVERSATIONS}/${n % 10 === 0 ? waba.longConversationId : anyConversation(waba, n)}`,
  },
  {
    name: 'conversations',
    about: '50 pages of conversations per second, every second in ascending order',
    ...paced,
    path: (_, n) => (n % 2 === 0 ? CONVERSATIONS : `${CONVERSATIONS}?order=asc`),
  },
  {
    name: 'events',
    about: '50 pages of events per second, every second in ascending order',
    ...paced,
    path: (_, n) => (n % 2 === 0 ? '/api/external/events' : '/api/external/events?order=asc'),
  },
  {
    name: 'me',
    about: 'GET /me as often as it goes, with autocannon',
    ...flood,
    path: () => '/me',
    target: { perSecond: 2_000 },
  },
  {
    name: 'messages-flood',
    about: 'pages of messages as often as it goes, with autocannon',
    ...flood,
    path: anyConversationMessages,
  },
];

function anyConversationMessages(waba: FilledWaba, n: number): string {
  return `${CONVERSATIONS}/${anyConversation(waba, n)}/messages`;
}
