import type { Knex } from 'knex';
import * as accounts from './0001-accounts.ts';
import * as inbox from './0002-inbox.ts';
import * as conversations from './0003-conversations.ts';
import * as deliveries from './0004-deliveries.ts';
import * as deliveryEngine from './0005-delivery-engine.ts';
import * as deliveryFunctions from './0006-delivery-functions.ts';
import * as eventList from './0007-event-list.ts';
import * as sending from './0008-sending.ts';
import * as mediaUploads from './0009-media-uploads.ts';
import * as rateLimits from './0010-rate-limits.ts';
import * as conversationReading from './0011-conversation-reading.ts';
import * as portalUsers from './0012-portal-users.ts';
import * as auditAndKeyRequests from './0013-audit-and-key-requests.ts';
import * as portalReading from './0014-portal-reading.ts';
import * as followers from './0015-followers.ts';
import * as auditReading from './0016-audit-reading.ts';
import * as retention from './0017-retention.ts';
import * as intakeInTurns from './0018-intake-in-turns.ts';
import * as claims from './0019-claims.ts';
import * as stepAside from './0020-step-aside.ts';
import * as housekeeping from './0021-housekeeping.ts';
import * as paymentReports from './0022-payment-reports-and-placeholders.ts';
import * as memberships from './0024-memberships.ts';
import * as failuresAndPace from './0025-failures-and-pace.ts';
import * as missingMedia from './0026-missing-media-and-groups.ts';
import * as numbersFollow from './0027-numbers-follow-upstream.ts';
import * as intakeEpoch from './0028-intake-epoch.ts';

/** One that sets `transaction` to false runs without one, as a concurrent index needs it. */
type Migration = Knex.Migration & { config?: { transaction: boolean } };

/** All migrations in order. Append only: what has been released is never edited (docs/decisions/0003). */
const MIGRATIONS: Record<string, Migration> = {
  '0001-accounts': { up: accounts.up, down: accounts.down },
  '0002-inbox': { up: inbox.up, down: inbox.down },
  '0003-conversations': { up: conversations.up, down: conversations.down },
  '0004-deliveries': { up: deliveries.up, down: deliveries.down },
  '0005-delivery-engine': { up: deliveryEngine.up, down: deliveryEngine.down },
  '0006-delivery-functions': { up: deliveryFunctions.up, down: deliveryFunctions.down },
  '0007-event-list': { up: eventList.up, down: eventList.down },
  '0008-sending': { up: sending.up, down: sending.down },
  '0009-media-uploads': { up: mediaUploads.up, down: mediaUploads.down },
  '0010-rate-limits': { up: rateLimits.up, down: rateLimits.down },
  '0011-conversation-reading': { up: conversationReading.up, down: conversationReading.down },
  '0012-portal-users': { up: portalUsers.up, down: portalUsers.down },
  '0013-audit-and-key-requests': { up: auditAndKeyRequests.up, down: auditAndKeyRequests.down },
  '0014-portal-reading': { up: portalReading.up, down: portalReading.down },
  '0015-followers': { up: followers.up, down: followers.down },
  '0016-audit-reading': { up: auditReading.up, down: auditReading.down },
  '0017-retention': { up: retention.up, down: retention.down, config: retention.config },
  '0018-intake-in-turns': { up: intakeInTurns.up, down: intakeInTurns.down },
  '0019-claims': { up: claims.up, down: claims.down },
  '0020-step-aside': { up: stepAside.up, down: stepAside.down },
  '0021-housekeeping': { up: housekeeping.up, down: housekeeping.down },
  '0022-payment-reports-and-placeholders': { up: paymentReports.up, down: paymentReports.down },
  '0024-memberships': { up: memberships.up, down: memberships.down },
  '0025-failures-and-pace': { up: failuresAndPace.up, down: failuresAndPace.down },
  '0026-missing-media-and-groups': { up: missingMedia.up, down: missingMedia.down },
  '0027-numbers-follow-upstream': { up: numbersFollow.up, down: numbersFollow.down },
  '0028-intake-epoch': { up: intakeEpoch.up, down: intakeEpoch.down },
};

/** Explicit list instead of a directory scan: a bundled or type-stripped file name never changes a migration's name. */
export const migrationSource: Knex.MigrationSource<string> = {
  getMigrations: async () => Object.keys(MIGRATIONS),
  getMigrationName: (name) => name,
  getMigration: async (name) => {
    const migration = MIGRATIONS[name];
    if (migration === undefined) throw new Error(`unknown migration ${name}`);
    return migration;
  },
};
