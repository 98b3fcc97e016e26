import { newSecretToken, secretTokenHash } from '../../platform/crypto/secret-box.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { deleteUpTo, execute, query, queryOne } from '../../platform/postgres/sql.ts';
import { LINK_IS_OVER, type PortalLinkGrant } from './portal-link-store.ts';
import type { PortalRole } from './user-input.ts';
import type { UserNotice } from './user-notices.ts';

const HOUR_MS = 3_600_000;

/** A session ends after this time without use, and after that time in any case. */
const IDLE_MS = 12 * HOUR_MS;
const LIFETIME_MS = 7 * 24 * HOUR_MS;
/** A person whom the provider has locked out since is out then. Signing in there again is one click. */
const OIDC_LIFETIME_MS = 12 * HOUR_MS;
/** Of a session that a portal link began, whose lifetime the link says. */
const LINK_IDLE_MS = HOUR_MS / 2;

/** How long a proof of who is there counts for dangerous actions, and how long a sign-in may wait for its second step. */
const PROOF_MS = 10 * 60_000;
const MAX_USER_AGENT_CHARS = 300;

type Tools = { database: Database };

/** Begins a session and returns its token, which is in the cookie and nowhere else. */
export async function startSession(
  { database }: Tools,
  given: Pick<NewSession, 'userId' | 'tenantId' | 'passwordLinkBy' | 'begunBy' | 'provenAtMs' | 'endsBy'> & {
    hasSecondFactor: boolean;
    portalLink?: SessionLink;
  },
  client: SessionClient,
): Promise<string> {
  const { token, tokenHash } = newSessionToken();
  const { portalLink, ...session } = given;
  await insertSession(database, {
    ...session,
    tokenHash,
    csrfToken: newSecretToken(),
    portalLinkId: portalLink?.id ?? null,
    idleMs: portalLink ? LINK_IDLE_MS : IDLE_MS,
    lifetimeMs: portalLink
      ? portalLink.sessionSeconds * 1_000
      : given.begunBy === 'oidc'
        ? OIDC_LIFETIME_MS
        : LIFETIME_MS,
    ip: client.ip,
    userAgent: storable(client.userAgent),
  });
  return token;
}

/** The portal link that begins a session, and how long the session lives. */
type SessionLink = { id: string; sessionSeconds: number };

/** Gives the session of a person a further portal link, and returns its new token: open forms keep theirs. Null: there is no such session. */
export async function renewByLink(
  trx: Database,
  { sessionId, userId, hasSecondFactor }: { sessionId: string; userId: string; hasSecondFactor: boolean },
  link: SessionLink,
): Promise<string | null> {
  const { token, tokenHash } = newSessionToken();
  const renewed = await execute(
    trx,
    `update user_sessions s set token_hash = :tokenHash, portal_link_id = :linkId, proven_at = now(), last_seen_at = now(),
            second_factor_at = case when cast(:hasSecondFactor as boolean) then now() end,
            idle_until = now() + :idleMs * interval '1 millisecond', expires_at = now() + :sessionSeconds * interval '1 second'
      where s.id = :sessionId and s.user_id = :userId and s.portal_link_id is not null and ${HOLDS}`,
    {
      tokenHash,
      sessionId,
      userId,
      hasSecondFactor,
      idleMs: LINK_IDLE_MS,
      linkId: link.id,
      sessionSeconds: link.sessionSeconds,
    },
  );
  return renewed === 1 ? token : null;
}

function newSessionToken(): { token: string; tokenHash: Buffer } {
  const token = newSecretToken();
  const tokenHash = secretTokenHash(token);
  if (tokenHash === null) throw new Error('a new token is malformed');
  return { token, tokenHash };
}

/**
 * Notes that the user of a session has given the second factor, and returns its new token: it can do more from now on.
 * A factor from before a link for a new password proves that the session is not that of the maker of the link.
 */
export async function completeSession(database: Database, sessionId: string): Promise<string> {
  const { token, tokenHash } = newSessionToken();
  await execute(
    database,
    `update user_sessions s set token_hash = :tokenHash, second_factor_at = now(), proven_at = now(),
            password_link_by = case when not exists (
              select from users u join user_totp f on f.user_id = u.id
               where u.id = s.user_id and f.created_at < u.password_link_at) then s.password_link_by end
      where s.id = :sessionId`,
    { tokenHash, sessionId },
  );
  return token;
}

export async function noteProof(database: Database, sessionId: string): Promise<void> {
  await execute(database, 'update user_sessions set proven_at = now() where id = :sessionId', { sessionId });
}

/** The session that a token opens, found by the token's hash; null: it has ended, or never was. */
export async function openSession(
  find: (tokenHash: Buffer) => Promise<OpenSession | null>,
  token: string,
): Promise<OpenSession | null> {
  const tokenHash = secretTokenHash(token);
  return tokenHash === null ? null : await find(tokenHash);
}

export async function noteUse({ database }: Tools, { id, isUseStale, link }: OpenSession): Promise<void> {
  if (!isUseStale) return;
  await execute(
    database,
    `update user_sessions set last_seen_at = now(), idle_until = now() + :idleMs * interval '1 millisecond' where id = :id`,
    { idleMs: link === null ? IDLE_MS : LINK_IDLE_MS, id },
  );
}

function storable(userAgent: string | null): string | null {
  return userAgent === null
    ? null
    : userAgent
        .slice(0, MAX_USER_AGENT_CHARS)
        .replace(/\p{Cc}/gu, ' ')
        .toWellFormed();
}

export type SessionClient = { ip: string | null; userAgent: string | null };

type NewSession = SessionClient & {
  /** SHA-256 of the cookie. */
  tokenHash: Buffer;
  userId: string;
  csrfToken: string;
  idleMs: number;
  lifetimeMs: number;
  /** Where it begins; null: at the operator's pages. */
  tenantId: string | null;
  /** Who made the link by which its password was set; null: its holder chose it, or it was begun otherwise. */
  passwordLinkBy: string | null;
  begunBy: BegunBy;
  hasSecondFactor: boolean;
  /** When its user proved to be there, milliseconds since 1970; left out: now. */
  provenAtMs?: number | null;
  /** It lasts no longer than the session that it follows; left out: it follows none. */
  endsBy?: Date | null;
  portalLinkId: string | null;
};

/** How a session was begun; `invitation`: with the password that was given there; `platform`: by a portal link. */
export type BegunBy = 'password' | 'oidc' | 'invitation' | 'set-up link' | 'platform';

/** A tenant that a user belongs to, or, with null, the operator's pages. */
type Place = { tenantId: string | null; businessName: string | null; role: PortalRole };

export type OpenSession = {
  id: string;
  csrfToken: string;
  userId: string;
  email: string;
  name: string;
  role: PortalRole;
  /** Null: at the operator's pages. */
  tenantId: string | null;
  /** Everywhere it may go, where it is included. */
  places: Place[];
  passwordLinkBy: string | null;
  /** The link by which the present password was set; null: its holder chose it. */
  passwordLink: { by: string; at: string } | null;
  /** Its last use was noted more than a minute ago. */
  isUseStale: boolean;
  begunBy: BegunBy;
  hasSecondFactor: boolean;
  /** It is so young that its second step may still come. */
  isNew: boolean;
  isProofFresh: boolean;
  provenAt: Date;
  /** It ends then, whatever its use. */
  expiresAt: Date;
  proofs: { password: boolean; totp: boolean; identity: boolean };
  /** What others did to the account and its owner has not confirmed, the newest first. */
  notices: UserNotice[];
  /** What the portal link permits that began it; null: none did. One that is over opens nothing, and shows the way back. */
  link: (PortalLinkGrant & { isOver: boolean }) | null;
};

const HOLDS = 'least(s.idle_until, s.expires_at) > now()';

const LINK = `case when l.id is not null then json_build_object('id', cast(l.id as text), 'capabilities', l.capabilities, 'wabaIds', l.waba_ids,
  'returnUrl', l.return_url, 'refreshUrl', l.refresh_url, 'embedOrigin', l.embed_origin, 'isOver', not ${HOLDS} or ${LINK_IS_OVER}) end`;

async function insertSession(database: Database, session: NewSession): Promise<void> {
  await execute(
    database,
    `insert into user_sessions (token_hash, user_id, csrf_token, idle_until, expires_at, ip, user_agent, tenant_id,
                                 password_link_by, begun_by, second_factor_at, proven_at, portal_link_id)
     values (:tokenHash, :userId, :csrfToken, now() + :idleMs * interval '1 millisecond',
             least(now() + :lifetimeMs * interval '1 millisecond', cast(:endsBy as timestamptz)), :ip, :userAgent, :tenantId, :passwordLinkBy, :begunBy,
             case when cast(:hasSecondFactor as boolean) then now() end,
             least(now(), coalesce(to_timestamp(cast(:provenAtMs as double precision) / 1000), now())), :portalLinkId)`,
    { provenAtMs: null, endsBy: null, ...session },
  );
}

const PLACES = `(select json_agg(p order by p."businessName" nulls first, p."tenantId")
  from (select cast(m.tenant_id as text) as "tenantId", t.business_name as "businessName", m.role
          from memberships m join tenants t on t.id = m.tenant_id
         where m.user_id = u.id and m.disabled_at is null
        union all select cast(t.id as text), t.business_name, l.role from tenants t where t.id = l.tenant_id
        union all select null, null, 'operator' where u.is_operator) p)`;

const PROOFS = `json_build_object('password', u.password_hash is not null,
  'totp', exists (select from user_totp f where f.user_id = u.id),
  'identity', exists (select from user_identities i where i.user_id = u.id))`;

const MAX_NOTICES = 5;
const NOTICES = `(select coalesce(json_agg(n), '[]') from (
  select cast(o.id as text) as id, o.at, o.kind, o.by, o.ip from user_notices o
   where o.user_id = u.id and o.seen_at is null order by o.id desc limit ${MAX_NOTICES}) n)`;

/** Read afresh each time, so that the end of a session or of a membership counts at once. */
export async function findOpenSessions(
  database: Database,
  tokenHashes: readonly Buffer[],
): Promise<{ tokenHash: Buffer; session: OpenSession }[]> {
  const rows = await query<OpenSession & { tokenHash: Buffer }>(
    database,
    `select s.id, s.csrf_token as "csrfToken", u.id as "userId", u.email, u.name, coalesce(l.role, m.role, 'operator') as role,
            s.tenant_id as "tenantId", ${PLACES} as places, s.password_link_by as "passwordLinkBy",
            case when u.password_link_by is not null
              then json_build_object('by', u.password_link_by, 'at', u.password_link_at) end as "passwordLink",
            s.last_seen_at < now() - interval '1 minute' as "isUseStale", s.token_hash as "tokenHash",
            s.begun_by as "begunBy", s.second_factor_at is not null as "hasSecondFactor",
            s.created_at > now() - :proofMs * interval '1 millisecond' as "isNew",
            s.proven_at > now() - :proofMs * interval '1 millisecond' as "isProofFresh",
            s.proven_at as "provenAt", s.expires_at as "expiresAt",
            ${PROOFS} as proofs, ${NOTICES} as notices, ${LINK} as link
       from user_sessions s join users u on u.id = s.user_id
       left join portal_links l on l.id = s.portal_link_id
       left join memberships m on m.user_id = s.user_id and m.tenant_id = s.tenant_id and m.disabled_at is null
      where s.token_hash = any (cast(:tokenHashes as bytea[])) and (${HOLDS} or l.id is not null) and u.disabled_at is null
        and case when s.tenant_id is null then u.is_operator else coalesce(l.role, m.role) is not null end`,
    { tokenHashes, proofMs: PROOF_MS },
  );
  return rows.map(({ tokenHash, ...session }) => ({ tokenHash, session }));
}

/** Where a session of a user begins: as an operator, or in the tenant used last; null: nowhere. */
export async function firstPlaceOf(
  database: Database,
  userId: string,
): Promise<{ tenantId: string | null } | null> {
  return await queryOne<{ tenantId: string | null }>(
    database,
    `select case when not u.is_operator then m.tenant_id end as "tenantId"
       from users u left join memberships m on m.user_id = u.id and m.disabled_at is null
      where u.id = :userId and u.disabled_at is null and (u.is_operator or m.user_id is not null)
      order by m.last_sign_in_at desc nulls last, m.created_at limit 1`,
    { userId },
  );
}

/** False: the user does not belong there, or the password is no longer that of `passwordHash`. */
export async function noteSignIn(
  trx: Database,
  userId: string,
  tenantId: string | null,
  passwordHash: string | null = null,
): Promise<boolean> {
  const known = await execute(
    trx,
    `update users set last_sign_in_at = now()
      where id = :userId and (is_operator or cast(:tenantId as bigint) is not null)
        and password_hash is not distinct from coalesce(cast(:passwordHash as text), password_hash)`,
    { userId, tenantId, passwordHash },
  );
  if (tenantId === null || known === 0) return known === 1;
  const entered = await execute(
    trx,
    `update memberships set last_sign_in_at = now() where user_id = :userId and tenant_id = :tenantId and disabled_at is null`,
    { userId, tenantId },
  );
  return entered === 1;
}

export async function moveSession(trx: Database, sessionId: string, tenantId: string | null): Promise<void> {
  await execute(trx, 'update user_sessions set tenant_id = :tenantId where id = :sessionId', {
    tenantId,
    sessionId,
  });
}

export type SessionSummary = SessionClient &
  Pick<OpenSession, 'id' | 'begunBy' | 'hasSecondFactor' | 'passwordLinkBy'> & {
    createdAt: Date;
    lastSeenAt: Date;
  };

/** The sessions of a user that hold, the one used last first; with a tenant, those that are there at present. */
export async function listSessions(
  database: Database,
  userId: string,
  tenantId: string | null = null,
): Promise<SessionSummary[]> {
  return await query<SessionSummary>(
    database,
    `select s.id, s.created_at as "createdAt", s.last_seen_at as "lastSeenAt", s.ip, s.user_agent as "userAgent",
            s.begun_by as "begunBy", s.second_factor_at is not null as "hasSecondFactor",
            s.password_link_by as "passwordLinkBy"
       from user_sessions s
      where s.user_id = :userId and ${HOLDS} and (cast(:tenantId as bigint) is null or s.tenant_id = :tenantId)
      order by s.last_seen_at desc, s.id desc`,
    { userId, tenantId },
  );
}

/** Ends sessions of a user and returns how many: one, or all but one, or all; with a tenant, of those that are there. */
export async function endSessions(
  database: Database,
  userId: string,
  which: { id?: string; but?: string; tenantId?: string | null } = {},
): Promise<number> {
  return await execute(
    database,
    `delete from user_sessions s
      where s.user_id = :userId and (cast(:tenantId as bigint) is null or s.tenant_id = :tenantId)
        and (cast(:id as bigint) is null or s.id = :id) and s.id is distinct from cast(:but as bigint)`,
    { userId, id: null, but: null, tenantId: null, ...which },
  );
}

/** Those of portal links go with their links. */
export async function forgetEndedSessions(database: Database, limit: number): Promise<number> {
  const which = 'least(idle_until, expires_at) < now() and portal_link_id is null';
  return await deleteUpTo(database, limit, 'user_sessions', which);
}
