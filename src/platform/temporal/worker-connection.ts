import { Context, type Info } from '@temporalio/activity';
import { Client, isGrpcServiceError, type WorkflowClientInterceptor } from '@temporalio/client';
import { NamespaceNotFoundError } from '@temporalio/common';
import {
  type ActivityInboundCallsInterceptor,
  NativeConnection,
  Runtime,
  type WorkerInterceptors,
} from '@temporalio/worker';
import { type Logger, redactError } from '../logger.ts';
import { type ActivityRun, tracing } from '../metrics/metrics.ts';
import { serverOptions, type TemporalServer } from './client-connection.ts';
import { SEARCH_ATTRIBUTE_NAMES } from './workflow-options.ts';

export type TemporalSettings = TemporalServer & { namespace: string };

/** Two of our queues are for activities only. */
const EXPECTED_WARNING = /^No workflows registered/;

const METRICS = {
  attachServiceName: false,
  prometheus: { countersTotalSuffix: true, unitSuffix: true, useSecondsForDurations: true },
};

/**
 * Sends the SDK's own log lines to `logger`, also those of its native part, and leaves signals to us. With `metricsAddress`
 * it serves its metrics there. Once per process, before any connection.
 */
export function installTemporalRuntime(logger: Logger, metricsAddress?: string): void {
  const forward = (message: string, meta?: Record<string, unknown>) => logger.debug(meta ?? {}, message);
  const prometheus = { ...METRICS.prometheus, bindAddress: metricsAddress ?? '' };
  Runtime.install({
    shutdownSignals: [],
    telemetryOptions: {
      logging: { filter: { core: 'WARN', other: 'ERROR' }, forward: {} },
      ...(metricsAddress !== undefined && { metrics: { ...METRICS, prometheus } }),
    },
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

/** Codes of gRPC with which a cluster refuses what only its administrators may do. */
const REFUSED = new Set([7, 12, 16]);

/** Temporal has not what workflows are started with, and this process may not make it. */
export class SearchAttributesMissingError extends Error {
  constructor(namespace: string, names: readonly string[]) {
    super(
      `Temporal's namespace ${namespace} lacks the search attributes ${names.join(', ')} and does not let this ` +
        'process create them: no workflow can start until an administrator has created them, as keywords',
    );
    this.name = 'SearchAttributesMissingError';
  }
}

/**
 * Registers the search attributes that workflows are started with, and returns those that were missing.
 * Throws when the namespace does not exist, which the operator creates, and SearchAttributesMissingError where only
 * administrators may register them, as in Temporal Cloud.
 */
export async function registerSearchAttributes(
  connection: NativeConnection,
  namespace: string,
): Promise<string[]> {
  const { operatorService } = connection;
  try {
    const { customAttributes } = await operatorService.listSearchAttributes({ namespace });
    const missing = SEARCH_ATTRIBUTE_NAMES.filter((name) => customAttributes?.[name] === undefined);
    if (missing.length === 0) return [];
    await operatorService.addSearchAttributes({
      namespace,
      searchAttributes: Object.fromEntries(missing.map((name) => [name, INDEXED_VALUE_TYPE_KEYWORD])),
    });
    return missing;
  } catch (error) {
    if (!(isGrpcServiceError(error) && REFUSED.has(error.code))) throw error;
    const missing = await missingSearchAttributes(connection, namespace);
    if (missing.length > 0) throw new SearchAttributesMissingError(namespace, missing);
    return [];
  }
}

/** Asked as any user may: a search by what is not there is refused. Throws when the namespace does not exist. */
async function missingSearchAttributes(connection: NativeConnection, namespace: string): Promise<string[]> {
  const isMissing = await Promise.all(
    SEARCH_ATTRIBUTE_NAMES.map(async (name) => {
      try {
        await connection.workflowService.countWorkflowExecutions({ namespace, query: `${name} = 'x'` });
        return false;
      } catch (error) {
        if (isGrpcServiceError(error) && error.code === INVALID_ARGUMENT) return true;
        throw error;
      }
    }),
  );
  return SEARCH_ATTRIBUTE_NAMES.filter((_name, index) => isMissing[index]);
}

/** Starts fail by the hundred at once, and Temporal itself takes seconds to know what was registered. */
const PAUSE_MS = 3_000;

const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;

export type TemporalUpkeep = {
  /** Makes sure of the namespace and the search attributes, unless that was just done. Never rejects. */
  ensure(): Promise<void>;
  /** Asks for the namespace, and rejects unless it is there within `withinMs`. Another one of its name has none of our workflows. */
  look(withinMs: number): Promise<void>;
  /** A client whose starts see to it that what they find missing is there for the next ones. */
  client: Client;
};

/**
 * Brings back what the operator and this process had set up in Temporal, should it lose its data: nothing would be
 * delivered otherwise until this process is started again. The namespace must exist at this time (creating it is the
 * operator's decision); if it is gone later, it is made again with the retention that it had. `onRebuilt` is called when
 * something had to be made, and when another process made the namespace again: the workflows are gone too.
 */
export async function openTemporalUpkeep(
  connection: NativeConnection,
  namespace: string,
  { logger, onRebuilt }: { logger: Logger; onRebuilt: () => Promise<void> },
): Promise<TemporalUpkeep> {
  const describe = () => connection.workflowService.describeNamespace({ namespace });
  const { config, namespaceInfo } = await describe();
  // What administrators alone may ask is not asked while nothing is missing.
  if ((await missingSearchAttributes(connection, namespace)).length > 0) {
    if ((await registerSearchAttributes(connection, namespace)).length > 0) await onRebuilt();
  }
  const retention = config?.workflowExecutionRetentionTtl ?? null;
  const bringBack = async () => {
    try {
      return await registerSearchAttributes(connection, namespace);
    } catch (error) {
      if (!isMissing(error)) throw error;
      await connection.workflowService.registerNamespace({
        namespace,
        workflowExecutionRetentionPeriod: retention,
      });
      // It takes the search attributes when it is known everywhere: the next failing start sees to that.
      return [`namespace ${namespace}`];
    }
  };
  const ensure = atMostEvery(PAUSE_MS, async () => {
    try {
      const made = await bringBack();
      if (made.length === 0) return;
      logger.warn({ made }, 'Temporal lost its data: namespace and search attributes recreated');
      await onRebuilt();
    } catch (error) {
      if (error instanceof SearchAttributesMissingError) logger.warn(error.message);
      else logger.debug({ err: error }, 'namespace and search attributes could not be checked in Temporal');
    }
  });
  let namespaceId = namespaceInfo?.id;
  return {
    ensure,
    async look(withinMs) {
      const { namespaceInfo: found } = await connection.withDeadline(Date.now() + withinMs, describe);
      if (found?.id === namespaceId) return;
      logger.warn({ namespace }, 'Temporal lost its data: pending workflows are started again');
      await onRebuilt();
      namespaceId = found?.id;
    },
    client: new Client({ connection, namespace, interceptors: { workflow: [watch(ensure)] } }),
  };
}

/** Joins a run under way; within `pauseMs` after one, does nothing. */
function atMostEvery(pauseMs: number, work: () => Promise<void>): () => Promise<void> {
  let endedMs = Number.NEGATIVE_INFINITY;
  let running: Promise<void> | null = null;
  return async () => {
    if (running === null && performance.now() - endedMs < pauseMs) return;
    running ??= work().finally(() => {
      endedMs = performance.now();
      running = null;
    });
    await running;
  };
}

/** Starts fail as they did: those who start try again anyway. */
function watch(ensure: () => Promise<void>): WorkflowClientInterceptor {
  const watched = async <Result>(start: Promise<Result>): Promise<Result> => {
    try {
      return await start;
    } catch (error) {
      if (isMissing(error)) await ensure();
      throw error;
    }
  };
  return {
    startWithDetails: (input, next) => watched(next(input)),
    signalWithStart: (input, next) => watched(next(input)),
  };
}

export function isMissing(error: unknown): boolean {
  if (error instanceof NamespaceNotFoundError) return true;
  if (!(error instanceof Error)) return false;
  if (!isGrpcServiceError(error)) return isMissing(error.cause);
  // The worker's connection leaves `details` empty and says it in the message.
  const said = `${error.details} ${error.message}`;
  if (error.code === NOT_FOUND) return /namespace/i.test(said);
  return error.code === INVALID_ARGUMENT && /search attribute/i.test(said);
}

/** What Temporal writes into histories of a failed activity quotes no data. */
export const REDACT_FAILURES: WorkerInterceptors = {
  activity: [() => ({ inbound: redacting })],
};

const redacting: ActivityInboundCallsInterceptor = {
  execute: async (input, next) => {
    try {
      if (tracing.inActivity === null) return await next(input);
      return await tracing.inActivity(runOf(Context.current().info), () => next(input));
    } catch (error) {
      redactError(error);
      throw error;
    }
  },
};

function runOf({ activityType, workflowType, workflowExecution, attempt }: Info): ActivityRun {
  const workflowId = workflowExecution?.workflowId ?? '';
  return { type: activityType, workflow: workflowType ?? '', workflow_id: workflowId, attempt };
}
