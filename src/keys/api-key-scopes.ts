/** What a key may be limited to: reading, sending messages, changing webhook endpoints and sending events again. */
export const API_KEY_SCOPES = ['read', 'send', 'manage_webhooks'] as const;

export type ApiKeyScope = (typeof API_KEY_SCOPES)[number];
