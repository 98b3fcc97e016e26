import { forgetOldFailures } from '../../../engine/endpoint/endpoint-failures.ts';
import { foldOldMinutes, forgetOldChartHours } from '../../../engine/endpoint/endpoint-health.ts';
import { forgetDeletedTemplates } from '../../../features/accounts/templates.ts';
import { forgetOldProblems } from '../../../features/accounts/upstream-problems.ts';
import { forgetOldCosts } from '../../../features/accounts/usage-costs.ts';
import { forgetLeftMembers } from '../../../features/customers/groups.ts';
import { forgetOldMails } from '../../../features/mail/mails.ts';
import { forgetOldErasedItems } from '../../../features/messages/erase-messages.ts';
import { sendRemovals } from '../../../features/messages/send-retention.ts';
import { forgetOldUsage } from '../../../features/messages/usage-days.ts';
import { settleLostReturns } from '../../../features/setup-links/lost-return.ts';
import { forgetOldSetupLinks } from '../../../features/setup-links/setup-link-store.ts';
import { expireSetupLinks } from '../../../features/setup-links/setup-links.ts';
import { forgetOldInvitations } from '../../../features/users/invitation-store.ts';
import { forgetOldPortalLinks } from '../../../features/users/portal-link-store.ts';
import { forgetOldNotices } from '../../../features/users/user-notices.ts';
import { forgetEndedSessions } from '../../../features/users/user-sessions.ts';
import { forgetUsersWithoutTenant } from '../../../features/users/user-store.ts';
import { sweepRepeats } from '../../../ingest/bodies/repeats.ts';
import { forgetOldDedupKeys } from '../../../ingest/intake/dedup-keys.ts';
import type { Logger } from '../../../platform/logger.ts';
import type { ObjectStore } from '../../../platform/object-store/object-store.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { inBatches } from '../../../platform/postgres/partitions.ts';
import { forgetOldAlerts } from '../../alerts/alerts.ts';
import { forgetOldHours } from '../../alerts/silence.ts';
import { applyRetention, type RetentionDays } from './expired-days.ts';
import { tenantRetentionSteps } from './tenant-retention.ts';

type RetentionTools = {
  database: Database;
  objectStore: Pick<ObjectStore, 'remove'>;
  logger: Logger;
  retentionDays: RetentionDays;
};

/** `run` begins nothing more once its signal is aborted; whatever it has left undone, the next turn does. */
export type HousekeepingStep = {
  name: string;
  run: (ending: AbortSignal) => Promise<unknown>;
  everyMs?: number;
};

/** Removes up to `limit` rows; returns how many. */
type BoundedRemoval = (database: Database, limit: number) => Promise<number>;

const CHARTS_KEPT_DAYS = 90;

const TENANTS_EVERY_MS = 10 * 60_000;

/** Whatever is removed because its time is over: by the settings of the installation and of tenants, or always. */
export function retentionSteps(tools: RetentionTools): HousekeepingStep[] {
  const { database, retentionDays } = tools;
  const bounded = (name: string, ...removals: BoundedRemoval[]): HousekeepingStep => ({
    name,
    run: async (ending) => {
      for (const remove of removals) await inBatches((limit) => remove(database, limit), ending);
    },
  });
  const charts = [forgetOldChartHours, forgetOldFailures].map(
    (forget): BoundedRemoval =>
      (given, limit) =>
        forget(given, CHARTS_KEPT_DAYS, limit),
  );
  return [
    { name: 'retention', run: (ending) => applyRetention(tools, retentionDays, ending) },
    ...tenantRetentionSteps(tools).map((step) => ({ everyMs: TENANTS_EVERY_MS, ...step })),
    bounded('deduplication keys', forgetOldDedupKeys),
    bounded('endpoint charts', foldOldMinutes, ...charts),
    ...Object.entries(sendRemovals(tools)).map(([name, run]) => ({ name, run })),
    bounded('group members', forgetLeftMembers),
    bounded('sessions', forgetEndedSessions, forgetOldPortalLinks, forgetOldNotices),
    bounded('alerts that ended', forgetOldAlerts),
    bounded('hours of WABAs', forgetOldHours),
    bounded('usage by day', forgetOldUsage, forgetOldCosts),
    bounded('upstream troubles', forgetOldProblems),
    bounded('deleted templates', forgetDeletedTemplates),
    bounded('e-mails', forgetOldMails),
    bounded('invitations', forgetOldInvitations),
    bounded('set-up links', settleLostReturns, expireSetupLinks, forgetOldSetupLinks),
    bounded('users without tenant', forgetUsersWithoutTenant),
    {
      name: 'erased items',
      run: async (ending) => {
        await sweepRepeats({ database }, ending);
        await inBatches((limit) => forgetOldErasedItems(database, limit), ending);
      },
    },
  ];
}
