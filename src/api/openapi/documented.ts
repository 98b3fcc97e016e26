import type { ErrorCode } from '../errors/error-codes.ts';
import type { Tag } from './tags.ts';

/** Headers that only some answers have; those of every answer are added by themselves. */
type AnswerHeader = 'Location' | 'Idempotent-Replayed' | 'ETag' | 'Retry-After';

export type AnswerDocs = {
  description: string;
  /** In what the example differs from the one that the schema gives. */
  example?: Readonly<Record<string, unknown>>;
  headers?: readonly AnswerHeader[];
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
  /** The answers that are no errors, by status. */
  answers: Readonly<Record<number, AnswerDocs>>;
};

export const DOCS = 'x-docs';

/** The documentation members of a route's schema: Fastify passes over them, the OpenAPI document is made of them. */
export function documented(docs: OperationDocs) {
  const { operationId, summary, description, tag } = docs;
  return { operationId, summary, description, tags: [tag], [DOCS]: docs };
}
