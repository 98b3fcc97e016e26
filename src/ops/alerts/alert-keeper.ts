import { HAS_ENDPOINT_CHANGE } from '../../engine/endpoint/endpoint-changes.ts';
import { type Mailer, mailerOf } from '../../features/mail/mails.ts';
import type { Config } from '../../platform/config/config.ts';
import type { SecretBox } from '../../platform/crypto/secret-box.ts';
import type { Logger } from '../../platform/logger.ts';
import { type Loop, startLoop, type WorkWatch } from '../../platform/loop.ts';
import type { Database } from '../../platform/postgres/database.ts';
import {
  failureOf,
  finishHousekeepingStep,
  isStepDue,
  listHousekeepingSteps,
  takeHousekeepingStep,
} from '../../platform/postgres/worker-processes.ts';
import { queueAlertMails } from './alert-mails.ts';
import { followConditions } from './alerts.ts';
import { lookForConditions } from './conditions.ts';
import { notifyOfChanges, notifyOfFailures } from './endpoint-notices.ts';
import { ACTIVITY_STEP, noteActivity } from './silence.ts';

const EVERY_MS = 30_000;
/** A process that dies in a turn holds the next one up for so long. */
const HOLD_MS = 5 * 60_000;
const HOUR_MS = 3_600_000;

const ALERTS_STEP = 'alerts';

export type AlertKeeperTools = {
  database: Database;
  logger: Pick<Logger, 'warn'>;
  mailer: Mailer;
  isDevelopment?: boolean;
};

/**
 * Notifies tenants of changes of their endpoints, woken by these. Every half minute, in one of all workers: opens and ends
 * alerts, and notifies of them.
 */
export function startAlertKeeper({
  config,
  secretBox,
  workWatch,
  ...tools
}: {
  config: Config;
  secretBox: SecretBox;
  database: Database;
  logger: Logger;
  workWatch?: WorkWatch;
}): Loop {
  const mailer = mailerOf(config, secretBox);
  return startLoop({
    name: 'alert-keeper',
    logger: tools.logger,
    work: { watch: workWatch, hasWork: `${HAS_ENDPOINT_CHANGE} or ${isStepDue(ALERTS_STEP)}` },
    turn: async () =>
      await keepAlerts({ ...tools, mailer, isDevelopment: config.mode === 'development' }, new Date()),
  });
}

/** One turn; without what another process did lately. True: more changes of endpoints wait. */
export async function keepAlerts(tools: AlertKeeperTools, now: Date): Promise<boolean> {
  const { database, logger } = tools;
  const isMore = await notifyOfChanges(database);
  await runStep(database, ALERTS_STEP, EVERY_MS, async () => {
    await runStep(database, ACTIVITY_STEP, HOUR_MS, async () => {
      const before = (await listHousekeepingSteps(database)).find(({ step }) => step === ACTIVITY_STEP);
      await noteActivity(database, before?.succeededAt ?? null, now);
    });
    const failed = await turn(tools, now);
    for (const { kind, error } of failed) logger.warn({ kind, err: error }, 'alert check failed');
    if (failed.length > 0)
      throw new Error(`alert checks failed: ${failed.map(({ kind }) => kind).join(', ')}`);
  });
  return isMore;
}

/** Returns which kinds could not be looked at. */
async function turn({ database, mailer, isDevelopment = false }: AlertKeeperTools, now: Date) {
  const looked = await lookForConditions(database, now, { isDevelopment });
  await followConditions(database, looked);
  await notifyOfFailures(database);
  if (mailer !== null) await queueAlertMails(database, mailer);
  return looked.filter((look) => 'error' in look);
}

/** As the steps of housekeeping: how it fails is kept for the portal and for metrics. */
async function runStep(
  database: Database,
  step: string,
  everyMs: number,
  run: () => Promise<void>,
): Promise<void> {
  if (!(await takeHousekeepingStep(database, step, HOLD_MS))) return;
  const failure = await failureOf(run());
  await finishHousekeepingStep(database, step, { error: failure?.text ?? null, nextMs: everyMs });
  if (failure !== null) throw failure.error;
}
