import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { findNumberOwners, wabaHolder } from '../accounts/number-owners.ts';
import {
  type LinkInDialog,
  listLinksInDialog,
  lockLostReturns,
  markCodeLost,
  type SetupFailure,
  type SetupLink,
  saveSetupLink,
} from './setup-link-store.ts';
import { noteLink } from './setup-notes.ts';
import { goOn } from './setup-task.ts';

const CODE_LOST: SetupFailure = {
  step: 'login',
  code: 'code_lost',
  retryable: true,
  message: 'Upstream reports that its dialog was finished, but the browser did not come back from there.',
  upstreamCode: null,
  retryAt: null,
};

/**
 * Upstream reports that a customer shared a WABA with the app. The link in whose dialog that was says so until the browser is back: it may be lost on the
 * way, and with it the code. The report names no link, so nothing is said where it may be of several.
 */
export async function noteSharedWaba(
  trx: Transaction,
  { wabaId, reportedAt }: { wabaId: string; reportedAt: Date },
): Promise<void> {
  const holder = await wabaHolder(trx, wabaId);
  const tenantId = holder?.tenantId ?? null;
  const link = await onlyLink(trx, wabaId, await listLinksInDialog(trx, { wabaId, tenantId, reportedAt }));
  if (link !== null) await markCodeLost(trx, link.id, CODE_LOST);
}

/** A link that is to connect a number of the WABA again, before those that wait for any. */
async function onlyLink(
  trx: Transaction,
  wabaId: string,
  links: readonly LinkInDialog[],
): Promise<LinkInDialog | null> {
  const wanted = links.flatMap(({ reconnectPhoneNumberId }) => reconnectPhoneNumberId ?? []);
  const owners = await findNumberOwners(trx, wanted);
  const again = links.filter(
    ({ reconnectPhoneNumberId: id }) => id !== null && owners.get(id)?.wabaId === wabaId,
  );
  const forNew = links.filter(({ reconnectPhoneNumberId }) => reconnectPhoneNumberId === null);
  const [link, ...more] = again.length > 0 ? again : forNew;
  return link !== undefined && more.length === 0 ? link : null;
}

/** Links whose browser has not come back for a minute: failed, or on their way with the access token that the WABA has; for housekeeping. */
export async function settleLostReturns(database: Database, limit: number): Promise<number> {
  return await database.transaction(async (trx) => {
    const lost = await lockLostReturns(trx, limit);
    for (const link of lost) await settle(trx, link);
    return lost.length;
  });
}

async function settle(trx: Transaction, link: SetupLink): Promise<void> {
  const { id, tenantId, failure, reconnectPhoneNumberId: phoneNumberId } = link;
  const numbers = await findNumberOwners(trx, phoneNumberId === null ? [] : [phoneNumberId]);
  const owner = [...numbers.values()].find((one) => one.tenantId === tenantId && !one.removed);
  if (owner === undefined) {
    await saveSetupLink(trx, id, { state: 'failed' });
    await noteLink(trx, 'setup_link.failed', link, { failure });
    return;
  }
  const { wabaId } = owner;
  const place = { wabaId, phoneNumberId };
  await saveSetupLink(trx, id, { state: 'authorized', failure: null, authorizedAt: new Date(), ...place });
  const changed = { ...link, ...place };
  await noteLink(trx, 'setup_link.authorized', changed);
  await goOn(trx, changed);
}
