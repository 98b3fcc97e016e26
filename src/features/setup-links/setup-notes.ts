import { type Actor, recordBy, SYSTEM } from '../../platform/audit/audit.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { publicSetupId } from '../../platform/public-ids.ts';
import { broughtWaba, type SetupFailure, type SetupLink } from './setup-link-store.ts';

type Noted = Pick<SetupLink, 'id' | 'tenantId' | 'wabaId' | 'phoneNumberId' | 'tokenSealed'>;

/** Who acts is the customer, whom we do not know. */
const CUSTOMER: Actor = { ...SYSTEM, name: 'set-up link' };

/** An entry of the audit log about a link, which is an event of the feed too where `operation-events.ts` says so. */
export async function noteLink(
  trx: Transaction,
  action: `setup_link.${'created' | 'authorized' | 'cancelled' | 'done' | 'failed' | 'expired' | 'revoked'}`,
  link: Noted,
  { actor = CUSTOMER, failure = null }: { actor?: Actor; failure?: SetupFailure | null } = {},
): Promise<void> {
  const setupLinkId = publicSetupId(link.id);
  const { tenantId, phoneNumberId } = link;
  const detail = {
    setupLinkId,
    ...(phoneNumberId !== null && { phoneNumberId }),
    ...(failure !== null && { step: failure.step, code: failure.code, retryable: failure.retryable }),
  };
  const target = `set-up link ${setupLinkId}`;
  await recordBy(trx, actor, { tenantId, wabaId: broughtWaba(link), action, target, detail });
}

export async function noteConnected(trx: Transaction, link: Noted): Promise<void> {
  const { id, tenantId, wabaId, phoneNumberId } = link;
  const detail = { setupLinkId: publicSetupId(id), phoneNumberId };
  const target = `number ${phoneNumberId}`;
  await recordBy(trx, SYSTEM, { tenantId, wabaId, action: 'number.connected', target, detail });
}
