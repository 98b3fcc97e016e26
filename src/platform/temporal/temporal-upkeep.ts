import { Client, isGrpcServiceError, type WorkflowClientInterceptor } from '@temporalio/client';
import { NamespaceNotFoundError } from '@temporalio/common';
import type { NativeConnection } from '@temporalio/worker';
import type { Logger } from '../logger.ts';
import { registerSearchAttributes } from './worker-connection.ts';

/** Starts fail by the hundred at once, and Temporal itself takes seconds to know what was registered. */
const PAUSE_MS = 3_000;

const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;

export type TemporalUpkeep = {
  /** Makes sure of the namespace and the search attributes, unless that was just done. Never rejects. */
  ensure(): Promise<void>;
  /** A client whose starts see to it that what they find missing is there for the next ones. */
  client: Client;
};

/**
 * Brings back what the operator and this process had set up in Temporal, should it lose its data: nothing would be
 * delivered otherwise until this process is started again. The namespace must exist at this time (creating it is the
 * operator's decision); if it is gone later, it is made again with the retention that it had. `onRebuilt` is called when
 * something had to be made: the workflows are gone too.
 */
export async function openTemporalUpkeep(
  connection: NativeConnection,
  namespace: string,
  { logger, onRebuilt }: { logger: Logger; onRebuilt: () => Promise<void> },
): Promise<TemporalUpkeep> {
  if ((await registerSearchAttributes(connection, namespace)).length > 0) await onRebuilt();
  const { config } = await connection.workflowService.describeNamespace({ namespace });
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
      logger.warn({ made }, 'Temporal lost its data: what starts need was made anew');
      await onRebuilt();
    } catch (error) {
      logger.debug({ err: error }, 'what starts need could not be looked up in Temporal');
    }
  });
  return {
    ensure,
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

/** Whether the namespace or a search attribute is not there. */
function isMissing(error: unknown): boolean {
  if (error instanceof NamespaceNotFoundError) return true;
  if (!(error instanceof Error)) return false;
  if (!isGrpcServiceError(error)) return isMissing(error.cause);
  // The worker's connection leaves `details` empty and says it in the message.
  const said = `${error.details} ${error.message}`;
  if (error.code === NOT_FOUND) return /namespace/i.test(said);
  return error.code === INVALID_ARGUMENT && /search attribute/i.test(said);
}
