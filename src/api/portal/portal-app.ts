import type { TestEventTools } from '../../deliveries/test-event.ts';
import type { OptionRules } from '../../endpoints/endpoint-options.ts';
import type { MediaUrls } from '../../messages/media/media-urls.ts';
import type { Config } from '../../platform/config/config.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import type { ObjectStore } from '../../platform/object-store/object-store.ts';
import type { Database } from '../../platform/postgres/database.ts';
import type { TemporalConnection } from '../../platform/temporal/client-connection.ts';
import type { ExternalApp } from '../external/external-app.ts';
import type { PageCursors } from '../external/page.ts';
import type { UpstreamCalls } from '../external/upstream-calls.ts';
import type { ConnectionShares } from '../shares/connection-shares.ts';
import type { DownloadShares } from '../shares/download-shares.ts';

/** A scope whose handlers have the types of their schemas. */
export type PortalApp = ExternalApp;

export type PortalContext = {
  config: Config;
  /** That of the shares. */
  database: Database;
  /** Where sessions are looked up. */
  lookupDatabase: Database;
  shares: ConnectionShares;
  /** For what people change: the same services that REST and the command line use. */
  accounts: SealedDatabase & OptionRules;
  startDelivery: TestEventTools['startDelivery'];
  cursors: PageCursors;
  exportStore: ObjectStore;
  exports: DownloadShares;
  /** For asking whether it is there. */
  probeStore: ObjectStore;
  /** As the object store. */
  temporal: TemporalConnection;
  upstream: UpstreamCalls;
  /** The settings of this process by name, without secrets. */
  settings: Readonly<Record<string, string>>;
  /** Where browsers and tenants reach the service, without a slash at the end. */
  publicUrl: string;
  mediaUrls: MediaUrls;
  /** The console of the sandbox, which only development has. */
  consolePages?: ConsolePages | undefined;
  /** This port is the one that operators' pages have of their own. */
  isOperatorListener: boolean;
  now: () => number;
};

export type ConsolePages = (app: PortalApp, context: PortalContext) => void;
