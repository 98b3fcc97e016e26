import type { Client } from '@temporalio/client';
import type { Logger } from '../../../platform/logger.ts';
import { type Loop, startLoop } from '../../../platform/loop.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { dayOfUuidV7 } from '../../../platform/public-ids.ts';
import { inTime, listWorkflows, terminateRun } from '../../../platform/temporal/workflow-states.ts';
import { deliveryIdOfWorkflow } from '../../queue/claim.ts';
import { findDeliveryEnds } from '../../queue/delivery-log.ts';
import { findOpenDeliveries } from '../../queue/sweep.ts';
import type { RunClient } from '../loop/delivery-runs.ts';
import { newsOf } from '../run-news.ts';

type RunUpkeepTools = {
  client: Client;
  runs: RunClient;
  database: Database;
  logger: Logger;
  taskQueue: string;
  isLeader: () => boolean;
};

const PAGE = 200;

/** Most runs of calm traffic start when their delivery has ended, and end within a task: younger ones are left alone. */
const PACE: { pollMs?: number; leastAgeMs: number } = { leastAgeMs: 60_000 };

/**
 * Ends the runs whose deliveries have ended without them: dropped, erased, or delivered while Temporal was away. One that
 * is still open at the next look cannot go on and is terminated. Needed for the display only, so it is done by one worker,
 * and rarely.
 */
export function startRunUpkeep(tools: RunUpkeepTools, { pollMs, leastAgeMs } = PACE): Loop {
  let asked: ReadonlySet<string> = new Set();
  return startLoop({
    name: 'run-upkeep',
    ...(pollMs !== undefined && { pollMs: () => pollMs }),
    logger: tools.logger,
    isLeader: tools.isLeader,
    turn: async () => {
      asked = await endRuns(tools, { asked, leastAgeMs });
      return false;
    },
  });
}

const REASON = 'its delivery has ended, and it could not go on';

/** Asks runs to end, and terminates those that were asked at the look before. Returns the ids of those asked. */
async function endRuns(
  tools: RunUpkeepTools,
  before: { asked: ReadonlySet<string>; leastAgeMs: number },
): Promise<Set<string>> {
  const { client, runs, database, taskQueue } = tools;
  const asked = new Set<string>();
  const query = `WorkflowType = "deliverEvent" AND ExecutionStatus = "Running"`;
  for await (const group of listWorkflows(client, query, PAGE)) {
    const shown = group.flatMap((run) => {
      const deliveryId = deliveryIdOfWorkflow(run.workflowId);
      return deliveryId === null ? [] : [{ ...run, deliveryId, deliveryDay: dayOfUuidV7(deliveryId) }];
    });
    const open = await findOpenDeliveries(
      database,
      shown.map(({ deliveryId }) => deliveryId),
    );
    const isOld = ({ startedAt }: { startedAt: Date }) =>
      Date.now() - startedAt.getTime() >= before.leastAgeMs;
    const ended = shown.filter((run) => !open.has(run.deliveryId) && isOld(run));
    const ends = await findDeliveryEnds(database, ended);
    for (const run of ended) {
      const end = ends.get(run.deliveryId) ?? null;
      // A run that the log does not have may belong to another installation with the same namespace.
      if (end === null && run.taskQueue !== taskQueue) continue;
      const news = newsOf({ state: 'settled', end });
      await inTime(client, async () => {
        if (before.asked.has(run.runId)) await terminateRun(client, run, REASON);
        else if (news.end === 'dropped') await runs.cancel(run.workflowId);
        else await runs.end(run.workflowId, news);
      });
      asked.add(run.runId);
    }
  }
  return asked;
}
