import { Context } from '@temporalio/activity';
import { endCancelledSetup, runSetupStep, type SetupProgress } from '../features/setup-links/run-set-up.ts';
import type { SetupCheck, StepTools } from '../features/setup-links/step-kit.ts';
import { callbackUrlOf, checkWaba, type WabaFindings } from '../ops/health/waba-check.ts';
import type { Config } from '../platform/config/config.ts';
import type { SealedDatabase } from '../platform/crypto/sealed-database.ts';
import { awaitingDatabase, withHeartbeat } from '../platform/temporal/activity-kit.ts';

export type SetUpNumberInput = { setupLinkId: string };

export type SetUpActivities = ReturnType<typeof makeSetUpActivities>;

export type SetUpTools = SealedDatabase & {
  graph: StepTools['graph'];
  publicUrl: string;
  upstream: Pick<Config['upstream'], 'signup' | 'verifyToken'>;
};

const TYPE = 'NotYetSetUp';

export function makeSetUpActivities({ database, secretBox, graph, publicUrl, upstream }: SetUpTools) {
  const { signup, verifyToken } = upstream;
  const accounts = { database, secretBox };
  const place = { publicUrl, database, accounts, upstream: { client: async () => graph } };
  const tools: StepTools = {
    ...accounts,
    graph,
    signup,
    callback: { callbackUrl: callbackUrlOf(place), verifyToken },
    selfCheck: async (wabaId) => setupCheckOf(await checkWaba(place, wabaId)),
  };
  return {
    /** One step of the link, and what is next; where the link is over, the run is cancelled. Nothing but ids and words of ours comes back. */
    setUpNumberStep: async ({ setupLinkId }: SetUpNumberInput): Promise<SetupProgress> =>
      await awaitingDatabase(TYPE, async () => {
        const progress = await withHeartbeat(() => runSetupStep(tools, setupLinkId));
        if (progress.end === 'over') await cancelOwnRun();
        return progress;
      }),

    /** Ends the link of a run that is cancelled, unless it is over; says how it ended. */
    endCancelledSetUp: async ({ setupLinkId }: SetUpNumberInput): Promise<string> =>
      await awaitingDatabase(TYPE, () => withHeartbeat(() => endCancelledSetup(database, setupLinkId))),
  };
}

/** Best effort: without it the run looks again. */
async function cancelOwnRun(): Promise<void> {
  const { client, info } = Context.current();
  const { workflowId } = info.workflowExecution ?? {};
  if (workflowId === undefined) return;
  await client.workflow
    .getHandle(workflowId)
    .cancel()
    .catch(() => undefined);
}

/** What must be right before a number counts as connected. An endpoint may come later. */
const NEEDED = ['token', 'subscription', 'numbers'] as const;

function setupCheckOf(findings: WabaFindings): SetupCheck {
  const wrong = NEEDED.map((id) => findings[id]).find(({ status }) => status !== 'up');
  return {
    problem: wrong === undefined ? null : `${wrong.question} ${wrong.detail}`,
    isSure: wrong?.status !== 'unknown',
    attention: findings.endpoints.status === 'up' ? [] : ['no_endpoint'],
  };
}
