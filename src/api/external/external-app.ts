import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import type { PolicyDefaults } from '../../features/accounts/tenant-policies.ts';
import type { OptionRules } from '../../features/endpoints/endpoint-options.ts';
import type { TestEventTools } from '../../features/endpoints/test-event.ts';
import type { MediaUrls } from '../../features/messages/media/media-urls.ts';
import type { OutcomeWaiter } from '../../features/messages/send/outcome-waiter.ts';
import type { TemplateCategories } from '../../features/messages/send/template-categories.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import type { ObjectStore } from '../../platform/object-store/object-store.ts';
import type { Database } from '../../platform/postgres/database.ts';
import type { StartTask } from '../../platform/temporal/workflow-starter.ts';
import type { EventStreams } from '../deliveries/event-watch.ts';
import type { KeyTools } from '../keys/api-key-auth.ts';
import type { UploadSlots } from '../messages/uploads/upload-slots.ts';
import type { DownloadShares } from '../shares/download-shares.ts';
import type { PageCursors } from './page.ts';
import type { UpstreamCalls } from './upstream-calls.ts';

export type ExternalApp = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

export type ExternalContext = KeyTools & {
  database: Database;
  accounts: SealedDatabase & OptionRules;
  startDelivery: TestEventTools['startDelivery'];
  cursors: PageCursors;
  /** Where tenants reach the service, https and without a slash at the end. */
  publicUrl: string;
  mediaUrls: MediaUrls;
  policyDefaults: PolicyDefaults;
  sends: { start: StartTask; outcomes: OutcomeWaiter; categories: TemplateCategories };
  uploadStore: ObjectStore;
  uploadSlots: UploadSlots;
  exportStore: ObjectStore;
  exports: DownloadShares;
  eventStreams: EventStreams;
  upstream: UpstreamCalls;
};
