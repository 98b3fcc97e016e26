import type { ErrorCode } from '../errors/error-codes.ts';

/** Headers that only some responses have; those of every response are added automatically. */
type AnswerHeader = 'Location' | 'Idempotent-Replayed' | 'ETag' | 'Retry-After';

export type AnswerDocs = {
  description: string;
  /** In what the example differs from the one that the schema gives. */
  example?: Readonly<Record<string, unknown>>;
  headers?: readonly AnswerHeader[];
  /** The media type unless it is JSON. */
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
  /** Whether the header Idempotency-Key is honoured. */
  idempotent?: true;
  /** Examples of the request body, by name. */
  requests?: Readonly<Record<string, unknown>>;
  /** The media type of the request body unless it is JSON. */
  requestType?: string;
  /** The successful responses by status. */
  answers: Readonly<Record<number, AnswerDocs>>;
};

export const DOCS = 'x-docs';

/** The documentation members of a route's schema: Fastify passes over them, the OpenAPI document is made of them. */
export function documented(docs: OperationDocs) {
  const { operationId, summary, description, tag } = docs;
  return { operationId, summary, description, tags: [tag], [DOCS]: docs };
}

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
  {
    name: 'Erasures',
    description: 'Erasing customers and conversations, and exporting what is stored of a customer.',
  },
  { name: 'Webhook endpoints', description: 'Where events are sent, and how.' },
  { name: 'Endpoint alerts', description: 'Who is told when an endpoint fails.' },
  { name: 'Service', description: 'The service itself.' },
  { name: 'Webhooks', description: 'What the service sends to your endpoints.' },
] as const;

type Tag = (typeof TAGS)[number]['name'];
