/** The six events of the product spec. */
export const EVENT_TYPES = ['message', 'status', 'payment', 'order', 'media.ready', 'test'] as const;

export type EventType = (typeof EVENT_TYPES)[number];
