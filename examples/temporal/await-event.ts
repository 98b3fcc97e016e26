import {
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';

/** What the receiver takes from a webhook. */
export type ReceivedEvent = {
  /** The header webhook-id: the same for each retry and replay of an event. */
  webhookId: string;
  /** The header X-Service-Delivery-Id: a replay has another one. */
  deliveryId: string;
  eventType: string;
  eventId: string;
  text: string;
};

export const eventReceived = defineSignal<[ReceivedEvent]>('eventReceived');
export const confirmedOrders = defineQuery<string[]>('confirmedOrders');

type Inbox = { seen: string[]; waiting: ReceivedEvent[] };

/** So many ids are kept: retries of a webhook go on for days, those of one customer are few. */
const MOST_SEEN = 1_000;

/** Takes events in once each, in their order; `awaitEvent` returns the first that fits, or null when the time is up. */
export function receiveEvents(inbox: Inbox) {
  setHandler(eventReceived, (event) => {
    // With replays as events of their own, compare eventId and deliveryId instead.
    if (inbox.seen.includes(event.webhookId)) return;
    inbox.seen = [...inbox.seen, event.webhookId].slice(-MOST_SEEN);
    inbox.waiting.push(event);
  });
  return async function awaitEvent(
    fits: (event: ReceivedEvent) => boolean,
    timeout: string | number,
  ): Promise<ReceivedEvent | null> {
    const isThere = await condition(() => inbox.waiting.some(fits), timeout);
    return isThere ? (inbox.waiting.splice(inbox.waiting.findIndex(fits), 1)[0] ?? null) : null;
  };
}

/** One workflow per customer, which lives on: an order counts once "yes" follows within an hour. */
export async function customer(
  inbox: Inbox = { seen: [], waiting: [] },
  confirmed: string[] = [],
): Promise<void> {
  const awaitEvent = receiveEvents(inbox);
  setHandler(confirmedOrders, () => confirmed);
  while (!workflowInfo().continueAsNewSuggested) {
    const order = await awaitEvent(({ text }) => text.startsWith('order '), '1 day');
    if (order === null) continue;
    const reply = await awaitEvent(({ text }) => text === 'yes' || text === 'no', '1 hour');
    if (reply?.text === 'yes') confirmed.push(order.text);
  }
  await continueAsNew<typeof customer>(inbox, confirmed);
}
