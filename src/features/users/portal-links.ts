import { type Audited, recordBy } from '../../platform/audit/audit.ts';
import { newSecretToken, secretTokenHash } from '../../platform/crypto/secret-box.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { publicSessionId, sessionRowOf } from '../../platform/public-ids.ts';
import { checkName, invalidValue, RateLimitError, RequestError } from '../../platform/request-input.ts';
import { checkProductUrl, notListed } from '../accounts/product-urls.ts';
import { emailOf } from '../mail/email-address.ts';
import {
  CAPABILITIES,
  type Capability,
  countRecentLinks,
  endPortalLink,
  endPortalLinkRows,
  findPortalLink,
  insertPortalLink,
  type LinkPage,
  type SeenPortalLink,
  takePortalLink,
  type UsedPortalLink,
} from './portal-link-store.ts';
import { actorAt, type OwnSession, type Visitor } from './sign-in.ts';
import { recordUserChange } from './user-authority.ts';
import { findUserOfIdentity, insertIdentity, PLATFORM_ISSUER } from './user-identities.ts';
import { renewByLink, startSession } from './user-sessions.ts';
import { insertUser, saveUserPerson, type TenantRole } from './user-store.ts';

type Tools = { database: Transaction } & Audited;

const LINK_SECONDS = 300;
const LINKS_A_MINUTE = 10;
const MINUTE_MS = 60_000;

/** What a member may not do, whatever a link says. */
const CHANGING: readonly Capability[] = ['manage_endpoints', 'reveal_secrets', 'retry', 'request_keys'];

/** Only where the product says so: what customers wrote. */
const NOT_BY_ITSELF: Capability = 'view_conversations';

export type LinkWanted = {
  user: { externalId: string; email: string; name?: string; mfa?: boolean };
  role: TenantRole;
  capabilities?: readonly Capability[];
  /** WABAs of the tenant; left out: all. */
  wabaIds?: readonly string[];
  page: LinkPage;
  sessionSeconds: number;
  returnUrl?: string;
  refreshUrl?: string;
  embed?: { origin: string };
};

/** Who may make links to where: the origins of the product, and whether people must have a second factor. */
export type LinkRules = {
  productOrigins: readonly string[];
  needsSecondFactor: boolean;
  platformKeyId: string | null;
};

/**
 * Makes a link that opens the portal of a tenant once; its token is in the answer and stored nowhere. The caller has
 * the tenant locked. Throws RequestError: `invalid_value`, `url_not_allowed`, `rate_limit_exceeded`.
 */
export async function createPortalLink(
  { database: trx, actor }: Tools,
  tenantId: string,
  wanted: LinkWanted,
  rules: LinkRules,
): Promise<{ id: string; token: string; linkExpiresAt: Date }> {
  const { user, role, page, sessionSeconds } = wanted;
  const capabilities = checkCapabilities(role, wanted.capabilities);
  const returnUrl = productUrl('returnUrl', wanted.returnUrl, rules);
  const refreshUrl = productUrl('refreshUrl', wanted.refreshUrl, rules);
  const embedOrigin = wanted.embed?.origin ?? null;
  if (embedOrigin !== null && !rules.productOrigins.includes(embedOrigin))
    throw notListed('embed', embedOrigin);
  const hasSecondFactor = user.mfa === true;
  if (rules.needsSecondFactor && !hasSecondFactor) {
    throw invalidValue(
      'Everybody needs a second factor here: send mfa true for people who gave one.',
      'user',
    );
  }
  const { userId, email } = await accountOf(trx, tenantId, user);
  if ((await countRecentLinks(trx, userId)) >= LINKS_A_MINUTE) {
    throw new RateLimitError(`A person gets at most ${LINKS_A_MINUTE} links a minute.`, MINUTE_MS);
  }
  const token = newSecretToken();
  const { id, linkExpiresAt } = await insertPortalLink(trx, {
    tokenHash: hashOf(token),
    tenantId,
    userId,
    platformKeyId: rules.platformKeyId,
    role,
    capabilities,
    wabaIds: wanted.wabaIds === undefined ? null : [...wanted.wabaIds],
    hasSecondFactor,
    page,
    returnUrl,
    refreshUrl,
    embedOrigin,
    sessionSeconds,
    linkSeconds: LINK_SECONDS,
  });
  const person = { userId, userRef: user.externalId };
  const detail = {
    portalSessionId: publicSessionId(id),
    role,
    capabilities: capabilities.join(', '),
    ...(wanted.wabaIds !== undefined && { wabaIds: wanted.wabaIds.join(', ') }),
    ...person,
  };
  await recordUserChange(trx, actor, { tenantId, action: 'user.portal_link_created', email, detail });
  return { id, token, linkExpiresAt };
}

function checkCapabilities(role: TenantRole, given: readonly Capability[] | undefined): Capability[] {
  const mayHave = CAPABILITIES.filter((one) => role === 'admin' || !CHANGING.includes(one));
  const wanted = given ?? mayHave.filter((one) => one !== NOT_BY_ITSELF);
  const tooHigh = wanted.find((one) => !mayHave.includes(one));
  if (tooHigh !== undefined) throw invalidValue(`A ${role} cannot have ${tooHigh}.`, 'capabilities');
  return CAPABILITIES.filter((one) => one === 'view' || wanted.includes(one));
}

/** Null: none is given. Throws RequestError `url_not_allowed`. */
function productUrl(param: string, text: string | undefined, { productOrigins }: LinkRules): string | null {
  return text === undefined ? null : checkProductUrl(param, text, productOrigins);
}

/** The account of a person of the product: it has no password and no membership, so that only links open it. */
async function accountOf(
  trx: Transaction,
  tenantId: string,
  { externalId, email: given, name: text }: LinkWanted['user'],
): Promise<{ userId: string; email: string }> {
  const email = emailOf(given);
  if (email === null) throw invalidValue('The email of the user must be an e-mail address.', 'user');
  const person = { email, name: text === undefined ? email : checkName('The name of the user', text) };
  const identity = { issuer: PLATFORM_ISSUER, subject: `${tenantId}/${externalId}` };
  const known = await findUserOfIdentity(trx, identity);
  if (known !== null) {
    await saveUserPerson(trx, known, person);
    return { userId: known, email };
  }
  const userId = await insertUser(trx, { ...person, isOperator: false, passwordHash: null });
  await insertIdentity(trx, userId, identity);
  return { userId, email };
}

/** What a link is, for its page; null: nothing is known of it. */
export async function seePortalLink(database: Database, token: string): Promise<SeenPortalLink | null> {
  const tokenHash = secretTokenHash(token);
  return tokenHash === null ? null : await findPortalLink(database, tokenHash);
}

type Opened = Pick<UsedPortalLink, 'tenantId' | 'page' | 'wabaIds'> & { token: string; isRenewed: boolean };

/**
 * Uses a link up and returns the token of its session. The session that its person has in this browser is renewed, so
 * that forms which are open there can still be sent. Null: the link is used, over or unknown.
 */
export async function openPortalLink(
  { database }: { database: Database },
  linkToken: string,
  present: OwnSession | null,
  visitor: Visitor,
): Promise<Opened | null> {
  const tokenHash = secretTokenHash(linkToken);
  if (tokenHash === null) return null;
  return await database.transaction(async (trx) => {
    const link = await takePortalLink(trx, tokenHash);
    if (link === null) return null;
    const { tenantId, userId, email, hasSecondFactor, page, wabaIds } = link;
    const opened = { tenantId, page, wabaIds };
    const detail = { portalSessionId: publicSessionId(link.id), userId };
    await recordUserChange(trx, actorAt({ id: userId, email }, visitor), {
      tenantId,
      action: 'user.portal_session_opened',
      email,
      detail,
    });
    const renewed =
      present === null
        ? null
        : await renewByLink(trx, { sessionId: present.id, userId, hasSecondFactor }, link);
    if (renewed !== null) return { ...opened, token: renewed, isRenewed: true };
    const begun = {
      userId,
      tenantId,
      hasSecondFactor,
      passwordLinkBy: null,
      begunBy: 'platform',
      portalLink: link,
    } as const;
    const token = await startSession({ database: trx }, begun, visitor);
    return { ...opened, token, isRenewed: false };
  });
}

/** Signing out of a link's session: its page then shows the way back. */
export async function closePortalLink(
  { database, actor }: { database: Database } & Audited,
  { link, tenantId, email }: { link: { id: string }; tenantId: string | null; email: string },
): Promise<void> {
  await database.transaction(async (trx) => {
    await endPortalLink(trx, link.id);
    const detail = { portalSessionId: publicSessionId(link.id) };
    await recordUserChange(trx, actor, { tenantId, action: 'user.portal_session_ended', email, detail });
  });
}

/** Ends links of a tenant and their sessions from the next request on; returns how many. */
export async function endPortalLinks(
  { database: trx, actor }: Tools,
  tenantId: string,
  { user, id }: { user?: string | undefined; id?: string | undefined },
): Promise<number> {
  const linkId = id === undefined ? null : checkLinkId(id);
  const subject = `${tenantId}/${user}`;
  const userId =
    user === undefined ? null : await findUserOfIdentity(trx, { issuer: PLATFORM_ISSUER, subject });
  if (user !== undefined && userId === null) return 0;
  const ended = await endPortalLinkRows(trx, tenantId, { userId, id: linkId });
  if (ended.length === 0) return 0;
  const detail = { ended: ended.length, userRef: user ?? null, portalSessionId: id ?? null };
  const target = `tenant ${tenantId}`;
  await recordBy(trx, actor, {
    tenantId,
    wabaId: null,
    target,
    action: 'tenant.portal_sessions_ended',
    detail,
  });
  return ended.length;
}

function checkLinkId(id: string): string {
  const rowId = sessionRowOf(id);
  if (rowId !== null) return rowId;
  throw invalidValue('The id of a session is ps_ and a number.', 'id');
}

function hashOf(token: string): Buffer {
  const tokenHash = secretTokenHash(token);
  if (tokenHash === null) throw new RequestError('malformed_token', 'A new token is malformed.');
  return tokenHash;
}
