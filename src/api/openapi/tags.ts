/** The parts of the API, in the order of the document. */
export const TAGS = [
  { name: 'Account', description: 'Whose the API key is, and what it may do.' },
  { name: 'Messages', description: 'Sending messages, and what became of them.' },
  { name: 'Media', description: 'Files that customers sent, and files to send.' },
  { name: 'Conversations', description: 'What was said, by customer and phone number.' },
  { name: 'Templates', description: 'Message templates of the WABA.' },
  { name: 'Payments', description: 'What became of payments that messages asked for.' },
  { name: 'Events', description: 'What was sent to webhook endpoints, attempt by attempt.' },
  { name: 'Replays', description: 'Sending events again.' },
  { name: 'Webhook endpoints', description: 'Where events are sent, and how.' },
  { name: 'Endpoint alerts', description: 'Who is told when an endpoint fails.' },
  { name: 'Service', description: 'The service itself.' },
  { name: 'Webhooks', description: 'What the service sends to your endpoints.' },
] as const;

export type Tag = (typeof TAGS)[number]['name'];
