import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import type { Database } from '../../database/database.ts';
import type { PageCursors } from '../../domain/page-cursor.ts';

/** A scope whose handlers have the types of their schemas. */
export type ExternalApp = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

/** What the endpoints of the External API work with. */
export type ExternalContext = {
  database: Database;
  cursors: PageCursors;
  /** Where tenants reach the service, https and without a slash at the end. */
  publicUrl: string;
};
