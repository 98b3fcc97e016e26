import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { deliverSession } from '../../workflows/deliver-session.ts';

/** More worker processes than this share the sessions of the others. */
const MAX_SESSIONS = 64;

/** Time for Temporal to give the session to a worker before another one is asked for. */
const PATIENCE_MS = 3_000;

export type SessionStarter = {
  /** Starts a session, unless one was just asked for. Rejects when Temporal is away. */
  start(): Promise<void>;
  /** It runs; the next one is started as soon as it is wanted. */
  arrived(): void;
};

/** Starts `delivery-session/<n>` with the lowest n that is free: one per process that has more than it may start. */
export function makeSessionStarter({
  client,
  taskQueue,
}: {
  client: Client;
  taskQueue: string;
}): SessionStarter {
  let askedMs = Number.NEGATIVE_INFINITY;
  return {
    async start() {
      if (performance.now() - askedMs < PATIENCE_MS) return;
      for (let n = 1; n <= MAX_SESSIONS; n += 1) {
        if (!(await startNumber(client, taskQueue, n))) continue;
        askedMs = performance.now();
        return;
      }
    },
    arrived() {
      askedMs = Number.NEGATIVE_INFINITY;
    },
  };
}

/** False when the session of this number is running. */
async function startNumber(client: Client, taskQueue: string, n: number): Promise<boolean> {
  try {
    await client.workflow.start<typeof deliverSession>('deliverSession', {
      taskQueue,
      workflowId: `delivery-session/${n}`,
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      workflowIdConflictPolicy: 'FAIL',
      requestEagerStart: true,
      args: [],
      staticSummary: 'flood control: deliveries in groups',
      staticDetails:
        'More was due than workflows of their own could carry. The pending activity shows the counts. Cancel and terminate lose nothing.',
    });
    return true;
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return false;
    throw error;
  }
}
