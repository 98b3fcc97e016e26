import { createHmac } from 'node:crypto';
import { type Audited, SYSTEM } from '../../platform/audit/audit.ts';
import { lazyInstallationKey } from '../../platform/crypto/installation-secret.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import { newSecretToken, secretTokenHash } from '../../platform/crypto/secret-box.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { setupRowOf } from '../../platform/public-ids.ts';
import { invalidValue, RequestError } from '../../platform/request-input.ts';
import { wakeTask } from '../../platform/temporal/workflow-tasks.ts';
import { NO_SUCH_NUMBER } from '../accounts/accounts.ts';
import { findNumberOwners } from '../accounts/number-owners.ts';
import { checkProductUrl } from '../accounts/product-urls.ts';
import { SUSPENDED } from '../accounts/suspension.ts';
import {
  countOpenSetupLinks,
  ENDED,
  findSetupLink,
  insertSetupLink,
  lockLinksOfWaba,
  lockPassedLinks,
  lockSetupLink,
  type NewSetupLink,
  type SetupLink,
  saveSetupLink,
} from './setup-link-store.ts';
import { noteLink } from './setup-notes.ts';
import { setUpWorkflowId } from './setup-task.ts';

type Tools = { database: Transaction } & Audited;
type SealedTools = Tools & SealedDatabase;

const MOST_OPEN = 5;

export type SetupLinkWanted = Omit<NewSetupLink, 'tenantId' | 'tokenHash'>;

/** Where links may lead back to, and whether an app is configured in whose dialog customers consent. */
export type SetupRules = { productOrigins: readonly string[]; hasSignup: boolean };

/**
 * Makes a link by which a customer of the tenant connects a number; its token is in the answer and stored nowhere. A repetition with the `idempotencyKey`
 * makes nothing, and gets it again. The caller has the tenant locked. Throws RequestError: `tenant_suspended`, `signup_not_configured`, `url_not_allowed`,
 * `unknown_phone_number`, `too_many_setup_links`, `idempotency_key_reused`.
 */
export async function createSetupLink(
  tools: SealedTools,
  tenant: { userId: string; state: 'active' | 'suspended' },
  wanted: SetupLinkWanted,
  { productOrigins, hasSignup }: SetupRules,
  idempotencyKey: string | null = null,
): Promise<{ link: SetupLink; token: string; made: boolean }> {
  const { database: trx, actor } = tools;
  const tenantId = tenant.userId;
  const token = await tokenOf(tools, tenantId, idempotencyKey);
  const tokenHash = secretTokenHash(token);
  if (tokenHash === null) throw new RequestError('malformed_token', 'A new token is malformed.');
  const known = idempotencyKey === null ? null : await findSetupLink(trx, { tokenHash });
  if (known !== null) return { link: sameLink(known, wanted), token, made: false };
  if (tenant.state === 'suspended') throw new RequestError('tenant_suspended', SUSPENDED);
  if (wanted.mode === 'signup' && !hasSignup) throw notConfigured();
  const successUrl = checkProductUrl('successUrl', wanted.successUrl, productOrigins);
  const failureUrl = checkProductUrl('failureUrl', wanted.failureUrl, productOrigins);
  await checkNumber(trx, tenantId, wanted.reconnectPhoneNumberId);
  if ((await countOpenSetupLinks(trx, tenantId)) >= MOST_OPEN) {
    throw new RequestError('too_many_setup_links', `A tenant has at most ${MOST_OPEN} open set-up links.`);
  }
  const link = await insertSetupLink(trx, { ...wanted, tenantId, tokenHash, successUrl, failureUrl });
  await noteLink(trx, 'setup_link.created', link, { actor });
  return { link, token, made: true };
}

/** With a key, it is derived from that: a repetition gets it although it is not stored. */
async function tokenOf(tools: SealedTools, tenantId: string, idempotencyKey: string | null): Promise<string> {
  if (idempotencyKey === null) return newSecretToken();
  const key = await lazyInstallationKey(tools, 'set-up links')();
  return createHmac('sha256', key)
    .update(JSON.stringify([tenantId, idempotencyKey]))
    .digest('base64url');
}

const HOUR_MS = 3_600_000;

/** Throws RequestError `idempotency_key_reused` where something else was asked for. */
function sameLink(link: SetupLink, wanted: SetupLinkWanted): SetupLink {
  const hours = Math.round((link.expiresAt.getTime() - link.createdAt.getTime()) / HOUR_MS);
  const asked = (one: Omit<SetupLinkWanted, 'expiresInHours'>) => [
    one.mode,
    one.connections,
    one.reconnectPhoneNumberId,
    one.clientState,
    URL.parse(one.successUrl)?.href,
    URL.parse(one.failureUrl)?.href,
  ];
  const isSame =
    hours === wanted.expiresInHours && JSON.stringify(asked(link)) === JSON.stringify(asked(wanted));
  if (isSame) return link;
  throw new RequestError('idempotency_key_reused', 'The Idempotency-Key was used with another body.');
}

export function notConfigured(): RequestError {
  return new RequestError(
    'signup_not_configured',
    'No app is configured in whose dialog customers could connect numbers.',
    'mode',
  );
}

async function checkNumber(trx: Transaction, tenantId: string, phoneNumberId: string | null): Promise<void> {
  if (phoneNumberId === null) return;
  const owner = (await findNumberOwners(trx, [phoneNumberId])).get(phoneNumberId);
  if (owner?.tenantId === tenantId) return;
  throw new RequestError('unknown_phone_number', NO_SUCH_NUMBER, 'reconnectPhoneNumberId');
}

/** The row of a link by its id of the API. Throws RequestError `invalid_value`. */
export function setupRowId(publicId: string): string {
  const rowId = setupRowOf(publicId);
  if (rowId !== null) return rowId;
  throw invalidValue('The id of a set-up link is sl_ and a number.', 'setupLinkId');
}

/** A link of a tenant. Throws RequestError: `invalid_value`, `unknown_setup_link`. */
export async function setupLinkOf(
  database: Database,
  tenantId: string,
  publicId: string,
): Promise<SetupLink> {
  const link = await findSetupLink(database, { id: setupRowId(publicId) });
  if (link?.tenantId === tenantId) return link;
  throw new RequestError('unknown_setup_link', 'The tenant has no such set-up link.');
}

/** Ends a link; what it has done stays, and its workflow is cancelled. One that has ended stays as it is. Throws as `setupLinkOf`. */
export async function revokeSetupLink(
  { database: trx, actor }: Tools,
  tenantId: string,
  publicId: string,
): Promise<SetupLink> {
  const { id } = await setupLinkOf(trx, tenantId, publicId);
  const link = await lockSetupLink(trx, id);
  if (link !== null && !ENDED.includes(link.state)) {
    await endLink(trx, link, 'revoked');
    await noteLink(trx, 'setup_link.revoked', link, { actor });
  }
  return await setupLinkOf(trx, tenantId, publicId);
}

/** A workflow that goes on finds that the link is over, and is cancelled with that reason. */
async function endLink(trx: Transaction, { id }: SetupLink, state: 'revoked' | 'expired'): Promise<void> {
  await saveSetupLink(trx, id, { state, tokenSealed: null, choice: null });
  await wakeTask(trx, setUpWorkflowId(id));
}

/** Ends links by which a WABA came that is removed. */
export async function endLinksOfWaba({ database: trx, actor }: Tools, wabaId: string): Promise<void> {
  for (const link of await lockLinksOfWaba(trx, wabaId)) {
    await endLink(trx, link, 'revoked');
    await noteLink(trx, 'setup_link.revoked', link, { actor });
  }
}

/** Marks links whose time has passed, for the feed; for housekeeping. */
export async function expireSetupLinks(database: Database, limit: number): Promise<number> {
  return await database.transaction(async (trx) => {
    const passed = await lockPassedLinks(trx, limit);
    for (const link of passed) {
      await endLink(trx, link, 'expired');
      await noteLink(trx, 'setup_link.expired', link, { actor: SYSTEM });
    }
    return passed.length;
  });
}
