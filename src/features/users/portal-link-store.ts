import type { Database, Transaction } from '../../platform/postgres/database.ts';
import {
  deleteUpTo,
  execute,
  queryColumn,
  queryOne,
  queryOnly,
  queryValue,
} from '../../platform/postgres/sql.ts';
import type { TenantRole } from './user-store.ts';

/** What a portal link may permit; `view` is in all of them. */
export const CAPABILITIES = [
  'view',
  'view_events',
  'view_conversations',
  'manage_endpoints',
  'reveal_secrets',
  'retry',
  'request_keys',
  'alerts',
  'audit',
] as const;

export type Capability = (typeof CAPABILITIES)[number];

/** Pages of a tenant that a link may lead to. */
export const LINK_PAGES = [
  'overview',
  'endpoints',
  'deliveries',
  'replays',
  'conversations',
  'event-types',
  'keys',
  'audit',
] as const;

export type LinkPage = (typeof LINK_PAGES)[number];

/** What the session of a link may do, and the ways back to the product. */
export type PortalLinkGrant = {
  id: string;
  capabilities: Capability[];
  /** The WABAs that it sees; null: all of its tenant. */
  wabaIds: string[] | null;
  returnUrl: string | null;
  refreshUrl: string | null;
  /** It is in a frame of this origin, and nowhere else; null: in no frame. */
  embedOrigin: string | null;
};

export type NewPortalLink = Omit<PortalLinkGrant, 'id'> & {
  tokenHash: Buffer;
  tenantId: string;
  userId: string;
  platformKeyId: string | null;
  role: TenantRole;
  hasSecondFactor: boolean;
  page: LinkPage;
  sessionSeconds: number;
  linkSeconds: number;
};

/** Ended from outside, by the key that made it, or with its tenant; `l` is the link. Judged with each request. */
export const LINK_IS_OVER = `(l.ended_at is not null
  or exists (select from platform_keys k where k.id = l.platform_key_id and k.revoked_at is not null)
  or exists (select from tenants t where t.id = l.tenant_id and (t.suspended_at is not null or t.removed_at is not null)))`;

const IS_OPEN = `l.used_at is null and l.link_expires_at > now() and not ${LINK_IS_OVER}`;

/** So long, the page of a link that is over shows the way back. */
const KEPT_AFTER = `interval '1 hour'`;

export async function insertPortalLink(
  trx: Transaction,
  link: NewPortalLink,
): Promise<{ id: string; linkExpiresAt: Date }> {
  return await queryOnly(
    trx,
    `insert into portal_links (token_hash, tenant_id, user_id, platform_key_id, role, capabilities, waba_ids,
                               has_second_factor, page, return_url, refresh_url, embed_origin, session_seconds, link_expires_at)
     values (:tokenHash, :tenantId, :userId, :platformKeyId, :role, cast(:capabilities as text[]), cast(:wabaIds as text[]),
             :hasSecondFactor, :page, :returnUrl, :refreshUrl, :embedOrigin, :sessionSeconds, now() + :linkSeconds * interval '1 second')
     returning id, link_expires_at as "linkExpiresAt"`,
    link,
  );
}

/** How many links a person was given within the last minute. */
export async function countRecentLinks(trx: Transaction, userId: string): Promise<number> {
  const text = `select count(*)::integer from portal_links where user_id = :userId and created_at > now() - interval '1 minute'`;
  return (await queryValue<number>(trx, text, { userId })) ?? 0;
}

export type SeenPortalLink = Omit<PortalLinkGrant, 'id' | 'capabilities' | 'wabaIds'> & {
  isOpen: boolean;
  tenantId: string;
  businessName: string;
};

/** Looks at a link and uses nothing up. */
export async function findPortalLink(database: Database, tokenHash: Buffer): Promise<SeenPortalLink | null> {
  return await queryOne<SeenPortalLink>(
    database,
    `select ${IS_OPEN} as "isOpen", t.id as "tenantId", t.business_name as "businessName", l.return_url as "returnUrl", l.refresh_url as "refreshUrl",
            l.embed_origin as "embedOrigin"
       from portal_links l join tenants t on t.id = l.tenant_id where l.token_hash = :tokenHash`,
    { tokenHash },
  );
}

export type UsedPortalLink = {
  id: string;
  tenantId: string;
  userId: string;
  email: string;
  hasSecondFactor: boolean;
  sessionSeconds: number;
  page: LinkPage;
  wabaIds: string[] | null;
};

/** Uses a link up. Of many at once, one gets it; null: it is used, over or unknown, or its person is locked out. */
export async function takePortalLink(trx: Transaction, tokenHash: Buffer): Promise<UsedPortalLink | null> {
  return await queryOne<UsedPortalLink>(
    trx,
    `update portal_links l set used_at = now() from users u
      where l.token_hash = :tokenHash and ${IS_OPEN} and u.id = l.user_id and u.disabled_at is null
      returning l.id, l.tenant_id as "tenantId", u.id as "userId", u.email, l.has_second_factor as "hasSecondFactor",
                l.session_seconds as "sessionSeconds", l.page, l.waba_ids as "wabaIds"`,
    { tokenHash },
  );
}

/** Ends links of a tenant with their sessions, all, those of one person or one; returns their ids. */
export async function endPortalLinkRows(
  trx: Database,
  tenantId: string,
  { userId = null, id = null }: { userId?: string | null; id?: string | null },
): Promise<string[]> {
  return await queryColumn<string>(
    trx,
    `update portal_links set ended_at = now()
      where tenant_id = :tenantId and ended_at is null and (cast(:userId as bigint) is null or user_id = :userId)
        and (cast(:id as bigint) is null or id = :id)
        and link_expires_at + session_seconds * interval '1 second' > now()
      returning cast(id as text)`,
    { tenantId, userId, id },
  );
}

export async function endPortalLink(trx: Database, id: string): Promise<void> {
  await execute(trx, 'update portal_links set ended_at = coalesce(ended_at, now()) where id = :id', { id });
}

/** Removes up to `limit` links whose sessions are over for an hour, with the sessions; for housekeeping. */
export async function forgetOldPortalLinks(database: Database, limit: number): Promise<number> {
  const which = `link_expires_at + session_seconds * interval '1 second' < now() - ${KEPT_AFTER}`;
  return await deleteUpTo(database, limit, 'portal_links', which);
}
