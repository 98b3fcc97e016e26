import { type Endpoint, listEndpoints } from '../../src/engine/endpoint/store.ts';
import { countWaiting } from '../../src/engine/queue/waiting.ts';
import { findDeliveries, type LoggedDelivery } from '../../src/features/delivery-log/deliveries.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { deliveryUuidOf } from '../../src/platform/public-ids.ts';
import type { ConsoleChoice } from './console-choice.ts';
import type { Behaviour, ChatEntry, ListedWebhook, ReceivedCounts, SandboxClient } from './sandbox-client.ts';

/** A received webhook with what the gateway knows of its delivery. */
export type ShownWebhook = ListedWebhook & {
  attempt: number;
  sinceTapMs: number | null;
  outlook: LoggedDelivery | null;
  /** Whether no later attempt of the same delivery came. */
  isLatest: boolean;
};

/** All that the console shows. */
export type ConsoleState = {
  choice: ConsoleChoice;
  /** Of this customer with this number, the oldest first. */
  thread: readonly ChatEntry[];
  /** Of the number's WABA, the newest first. */
  webhooks: readonly ShownWebhook[];
  counts: ReceivedCounts;
  behaviour: Behaviour;
  /** The sample tenant's endpoint; null when it was removed. */
  endpoint: Endpoint | null;
  /** Events that wait for the sample tenant. */
  waiting: number;
};

/** More would make the page larger than it need be. */
const MAX_WEBHOOKS = 50;
const MAX_BUBBLES = 40;

/** Asks both servers of the sandbox and the database. Throws ApiError 503 when the sandbox is away. */
export async function readConsole(
  database: Database,
  client: SandboxClient,
  choice: ConsoleChoice,
): Promise<ConsoleState> {
  const { wabaId, phoneNumberId } = choice.number;
  const [chat, { data, counts }, behaviours, endpoints] = await Promise.all([
    client.chat(wabaId),
    client.received(wabaId, MAX_WEBHOOKS),
    client.behaviours(),
    listEndpoints(database, wabaId),
  ]);
  const endpoint = endpoints.find(({ url }) => isOfSandbox(url, wabaId)) ?? null;
  const waiting =
    endpoint === null ? undefined : (await countWaiting(database, [endpoint.id])).get(endpoint.id);
  return {
    choice,
    thread: chat
      .filter((entry) => entry.phoneNumberId === phoneNumberId && entry.customer === choice.customer.waId)
      .slice(-MAX_BUBBLES),
    webhooks: await withOutlooks(database, wabaId, data, chat),
    counts,
    behaviour: behaviours.find(({ name }) => name === wabaId) ??
      behaviours.find(({ name }) => name === undefined) ?? { mode: 'ok' },
    endpoint,
    waiting: waiting?.count ?? 0,
  };
}

/** The sample tenant tells the WABAs apart by the path of their endpoints. */
function isOfSandbox(url: string, wabaId: string): boolean {
  return URL.parse(url)?.pathname === `/webhook/${wabaId}`;
}

async function withOutlooks(
  database: Database,
  wabaId: string,
  webhooks: readonly ListedWebhook[],
  chat: readonly ChatEntry[],
): Promise<ShownWebhook[]> {
  const uuids = webhooks.map((webhook) => deliveryUuidOf(headerOf(webhook, 'x-service-delivery-id')));
  const known = uuids.filter((uuid) => uuid !== null);
  const outlooks = await findDeliveries(database, wabaId, [...new Set(known)]);
  return webhooks.map((webhook, at) => {
    const uuid = uuids[at] ?? null;
    return {
      ...webhook,
      attempt: Number(headerOf(webhook, 'x-service-attempt')) || 1,
      sinceTapMs: sinceTapMs(webhook, chat),
      outlook: uuid === null ? null : (outlooks.get(uuid) ?? null),
      isLatest: uuid === null || uuids.indexOf(uuid) === at,
    };
  });
}

function headerOf({ headers }: ListedWebhook, name: string): string {
  return headers[name] ?? '';
}

const MEDIA_SUFFIX = '_media';

/**
 * How long it took from the tap on the phone (or from the moment when a status came about) to this receipt, in
 * milliseconds; null when the sandbox does not remember the tap.
 */
function sinceTapMs(webhook: ListedWebhook, chat: readonly ChatEntry[]): number | null {
  const tappedAt = tapTime(webhook, chat);
  return tappedAt === undefined ? null : Math.max(0, Date.parse(webhook.receivedAt) - Date.parse(tappedAt));
}

function tapTime(webhook: ListedWebhook, chat: readonly ChatEntry[]): string | undefined {
  const { eventType, eventId, state, receivedAt } = webhook;
  const before = (entry: ChatEntry) => entry.at <= receivedAt;
  switch (eventType) {
    case 'message':
      return chat.find((entry) => entry.id === eventId)?.at;
    case 'media.ready': {
      const messageId = eventId.endsWith(MEDIA_SUFFIX) ? eventId.slice(0, -MEDIA_SUFFIX.length) : eventId;
      return chat.find((entry) => entry.id === messageId)?.at;
    }
    case 'status':
      return chat.find((entry) => entry.id === eventId)?.states.find((one) => one.state === state)?.at;
    case 'payment':
      return chat.findLast((entry) => before(entry) && eventId.startsWith(`payment:${entry.id}:`))?.at;
    case 'order':
      return chat.findLast((entry) => before(entry) && entry.message.type === 'order')?.at;
    default:
      return undefined;
  }
}
