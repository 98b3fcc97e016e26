import { Client } from '@temporalio/client';
import { NativeConnection, Runtime } from '@temporalio/worker';
import type { Logger } from '../logger.ts';
import { serverOptions, type TemporalServer } from './client-connection.ts';
import { SEARCH_ATTRIBUTE_NAMES } from './search-attributes.ts';

export type TemporalSettings = TemporalServer & { namespace: string };

/** Two of our queues are for activities only. */
const EXPECTED_WARNING = /^No workflows registered/;

/** Sends the SDK's own log lines to `logger` and leaves signals to us. Once per process, before any connection. */
export function installTemporalRuntime(logger: Logger): void {
  const forward = (message: string, meta?: Record<string, unknown>) => logger.debug(meta ?? {}, message);
  Runtime.install({
    shutdownSignals: [],
    logger: {
      log: (_level, message, meta) => forward(message, meta),
      trace: forward,
      debug: forward,
      info: forward,
      warn: (message, meta) => {
        if (EXPECTED_WARNING.test(message)) forward(message, meta);
        else logger.warn(meta ?? {}, message);
      },
      error: (message, meta) => logger.warn(meta ?? {}, message),
    },
  });
}

/** One connection serves workers and client, so that workflows can start eagerly in this process. */
export async function connectTemporal(
  settings: TemporalSettings,
): Promise<{ connection: NativeConnection; client: Client }> {
  const connection = await NativeConnection.connect(serverOptions(settings));
  const client = new Client({ connection, namespace: settings.namespace });
  return { connection, client };
}

/** temporal.api.enums.v1.IndexedValueType; the package that names it cannot be imported by name from ESM. */
const INDEXED_VALUE_TYPE_KEYWORD = 2;

/**
 * Registers the search attributes that workflows are started with, and returns those that were missing.
 * Throws when the namespace does not exist: creating it is the operator's decision.
 */
export async function registerSearchAttributes(
  connection: NativeConnection,
  namespace: string,
): Promise<string[]> {
  const { operatorService } = connection;
  const { customAttributes } = await operatorService.listSearchAttributes({ namespace });
  const missing = SEARCH_ATTRIBUTE_NAMES.filter((name) => customAttributes?.[name] === undefined);
  if (missing.length === 0) return [];
  await operatorService.addSearchAttributes({
    namespace,
    searchAttributes: Object.fromEntries(missing.map((name) => [name, INDEXED_VALUE_TYPE_KEYWORD])),
  });
  return missing;
}
