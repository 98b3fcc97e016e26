import type { Config } from '../../platform/config/config.ts';
import type { ObjectStore } from '../../platform/object-store/object-store.ts';
import type { Database } from '../../platform/postgres/database.ts';
import type { TemporalConnection } from '../../platform/temporal/client-connection.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import type { ConnectionShares } from '../shares/connection-shares.ts';

/** A scope whose handlers have the types of their schemas. */
export type PortalApp = ExternalApp;

/** Of the API's context: for what people change, the same services that REST and the command line use. */
type Shared = Pick<
  ExternalContext,
  | 'accounts'
  | 'startDelivery'
  | 'cursors'
  | 'exportStore'
  | 'exports'
  | 'upstream'
  | 'publicUrl'
  | 'mediaUrls'
>;

export type PortalContext = Shared & {
  config: Config;
  /** That of the shares. */
  database: Database;
  /** Where sessions are looked up. */
  lookupDatabase: Database;
  shares: ConnectionShares;
  /** Both for asking whether they are there. */
  probeStore: ObjectStore;
  temporal: TemporalConnection;
  /** The settings of this process by name, without secrets. */
  settings: Readonly<Record<string, string>>;
  /** The console of the sandbox, which only development has. */
  consolePages?: ConsolePages | undefined;
  isOperatorListener: boolean;
  now: () => number;
};

export type ConsolePages = (app: PortalApp, context: PortalContext) => void;
