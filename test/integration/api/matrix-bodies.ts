/** For routes with an id in the path that take no empty body. */
export const BODIES: Record<string, unknown> = {
  addBroadcastRecipients: { recipients: [{ to: '+12025550143' }] },
  controlThread: { action: 'release' },
  moveScheduledMessage: { sendAt: '2100-01-01T00:00:00Z' },
};

/** Bodies that select: what is unknown selects nothing. */
export const SEARCHES = ['searchConversations', 'searchOptOuts'];

/** What a body must hold besides an id so that the id is looked at. */
export const REFERENCES_NEED: Record<string, Record<string, unknown>> = {
  addOptOut: { customer: '+12025550143', scope: 'marketing' },
  createBroadcast: { name: 'Sale', template: { name: 'a', language: { code: 'en_US' } } },
  endOptOut: { customer: '+12025550143', evidence: 'x' },
  createWebhookEndpoint: { url: 'https://93.184.216.34/hook' },
  sendMessage: { to: '+12025550143', type: 'text', text: { body: 'x' } },
};
