import type { Database } from '../../platform/postgres/database.ts';
import { ageText, type Finding, ok, warn } from '../health/findings.ts';
import { anchorOf, KINDS } from './alert-kinds.ts';
import { allAlerts } from './alerts.ts';

/** More are seen in the portal. */
const MOST_ALERTS = 20;

/** For the doctor: each open alert is a warning. */
export async function findOpenAlerts(database: Database): Promise<Finding[]> {
  const open = await allAlerts({ database }, { wabaId: null, state: 'open', limit: MOST_ALERTS });
  const alerts = open.filter(({ kind }) => !KINDS[kind].isNotice);
  if (alerts.length === 0) return [ok('none is open')];
  return alerts.map(({ kind, businessName, wabaId, reason, openedAt }) => {
    const whose = [businessName, wabaId].filter((one) => one !== null).join(', ') || 'installation';
    return warn(
      `${KINDS[kind].title} (${whose}) for ${ageText(openedAt)}: ${reason}`,
      `see docs/operators/runbooks.md#${anchorOf(kind)}: ${KINDS[kind].steps[0]}`,
    );
  });
}
