import type { ErrorCode } from '../errors/error-codes.ts';

/** Headers that only some responses have; those of every response are added automatically. */
type AnswerHeader = 'Location' | 'Idempotent-Replayed' | 'ETag' | 'Retry-After';

export type AnswerDocs = {
  description: string;
  /** In what the example differs from the one that the schema gives. */
  example?: Readonly<Record<string, unknown>>;
  headers?: readonly AnswerHeader[];
  type?: string;
};

/** What the document says about an operation beyond the schemas that validate it, which describe their own members. */
export type OperationDocs = {
  operationId: string;
  /** A few words, without a full stop. */
  summary: string;
  description: string;
  tag: Tag;
  /** Codes that do not follow from the route itself (key, scope, id in the path, query, body, rate). */
  errors?: readonly ErrorCode[];
  idempotent?: true;
  requests?: Readonly<Record<string, unknown>>;
  requestType?: string;
  answers: Readonly<Record<number, AnswerDocs>>;
};

export const DOCS = 'x-docs';

/** Fastify passes over these members; the OpenAPI document is made of them. */
export function documented(docs: OperationDocs) {
  const { operationId, summary, description, tag } = docs;
  return { operationId, summary, description, tags: [tag], [DOCS]: docs };
}

export const TAGS = [
  { name: 'Account', description: 'The account and the scopes of the API key.' },
  { name: 'Messages', description: 'Sending messages, and their states.' },
  { name: 'Broadcasts', description: 'One template to many customers.' },
  { name: 'Media', description: 'Files that customers sent, and files to send.' },
  { name: 'Conversations', description: 'Conversations and their messages.' },
  { name: 'Templates', description: 'Message templates of the WABA.' },
  { name: 'Payments', description: 'The states of payments that messages requested.' },
  { name: 'Events', description: 'Events for webhook endpoints, with each delivery and attempt.' },
  { name: 'Replays', description: 'Sending events again.' },
  { name: 'Opt-outs', description: 'Customers who want no messages of some kind.' },
  {
    name: 'Erasures',
    description: 'Erasing customers and conversations, and exporting the data of a customer.',
  },
  { name: 'Webhook endpoints', description: 'The servers that receive events, and their settings.' },
  { name: 'Endpoint alerts', description: 'Alerts about endpoints, and the URL that receives them.' },
  { name: 'Service', description: 'The service itself.' },
  { name: 'Webhooks', description: 'The requests that the service sends to your endpoints.' },
] as const;

export const PLATFORM_TAGS = [
  { name: 'Tenants', description: 'Tenants under your own ids, with quotas and suspension.' },
  { name: 'WABAs', description: 'The WhatsApp Business Accounts of a tenant, with their numbers.' },
  { name: 'Portal', description: 'Links by which people of your product open the portal of a tenant.' },
  { name: 'Set-up links', description: 'Links by which customers connect numbers.' },
  { name: 'Keys', description: 'API keys of tenants, for the External API.' },
  { name: 'Endpoints', description: 'Webhook endpoints of tenants, under your own names.' },
  { name: 'Users', description: 'Users of the portal, under your own ids.' },
  { name: 'Service', description: 'The platform key, and what platform keys changed.' },
] as const;

type Tag = (typeof TAGS | typeof PLATFORM_TAGS)[number]['name'];
