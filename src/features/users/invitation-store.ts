import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { deleteUpTo, execute, query, queryOne, queryOnly } from '../../platform/postgres/sql.ts';
import type { PortalRole } from './user-input.ts';

/** A one-time link: an invitation, which is bound to no account until it is accepted, or a link for a new password. */
export type Invitation = {
  id: string;
  email: string;
  /** What it invites to be; null: it is for a new password. */
  role: PortalRole | null;
  /** Of an invitation: null for operators. Of a password link: the tenant whose administrator made it. */
  tenantId: string | null;
  businessName: string | null;
  /** Who gets a new password by it; null: it is an invitation. */
  userId: string | null;
  /** Its link went to the address by e-mail, and its maker has not seen it. */
  isMailed: boolean;
  /** The user who made it; null: a command. */
  makerId: string | null;
  invitedBy: string;
  /** What the operator's program calls who is invited; null: nothing. */
  ref: string | null;
  createdAt: Date;
  expiresAt: Date;
};

type NewInvitation = Omit<Invitation, 'id' | 'businessName' | 'createdAt' | 'expiresAt'> & {
  tokenHash: Buffer;
  lifetimeMs: number;
};

const SELECT = `select i.id, i.email, i.role, i.tenant_id as "tenantId", t.business_name as "businessName",
  i.user_id as "userId", i.maker_id as "makerId", i.invited_by as "invitedBy", i.ref, i.mailed as "isMailed", i.created_at as "createdAt", i.expires_at as "expiresAt"
  from invitations i left join tenants t on t.id = i.tenant_id`;
const OPEN = 'i.accepted_at is null and i.expires_at > now()';

/** Adds a link; an open one of the same kind of the same tenant for this address, or this user, ends. */
export async function insertInvitation(trx: Transaction, invitation: NewInvitation): Promise<Date> {
  await execute(
    trx,
    `delete from invitations where email = :email and accepted_at is null
        and user_id is not distinct from cast(:userId as bigint)
        and (user_id is not null or tenant_id is not distinct from cast(:tenantId as bigint))`,
    invitation,
  );
  const row = await queryOnly<{ expiresAt: Date }>(
    trx,
    `insert into invitations (token_hash, email, role, tenant_id, user_id, invited_by, ref, maker_id, mailed, expires_at)
     values (:tokenHash, :email, :role, :tenantId, :userId, :invitedBy, :ref, :makerId, :isMailed, now() + :lifetimeMs * interval '1 millisecond')
     returning expires_at as "expiresAt"`,
    invitation,
  );
  return row.expiresAt;
}

export async function findOpenInvitation(database: Database, tokenHash: Buffer): Promise<Invitation | null> {
  return await queryOne<Invitation>(database, `${SELECT} where i.token_hash = :tokenHash and ${OPEN}`, {
    tokenHash,
  });
}

/** Without links for a new password; those of several tenants stand side by side. */
export async function openInvitationsOf(database: Database, email: string): Promise<Invitation[]> {
  const text = `${SELECT} where i.email = :email and i.user_id is null and ${OPEN} order by i.id`;
  return await query<Invitation>(database, text, { email });
}

/** The pending links of a tenant, those for a new password too; a null tenant: of all. */
export async function listInvitations(database: Database, tenantId: string | null): Promise<Invitation[]> {
  return await query<Invitation>(
    database,
    `${SELECT} where (cast(:tenantId as bigint) is null or i.tenant_id = :tenantId) and ${OPEN}
      order by i.created_at desc, i.id desc`,
    { tenantId },
  );
}

/** Uses an invitation up; false when it was used, withdrawn or too old, also a moment ago. */
export async function takeInvitation(trx: Transaction, id: string): Promise<boolean> {
  const taken = await execute(
    trx,
    'update invitations set accepted_at = now() where id = :id and accepted_at is null and expires_at > now()',
    { id },
  );
  return taken === 1;
}

/** Withdraws a pending invitation and returns the address; null when there is none such. A null tenant: any. */
export async function deleteInvitation(
  database: Database,
  tenantId: string | null,
  id: string,
): Promise<Pick<Invitation, 'email' | 'tenantId' | 'ref'> | null> {
  return await queryOne<Pick<Invitation, 'email' | 'tenantId' | 'ref'>>(
    database,
    `delete from invitations
      where id = :id and accepted_at is null and (cast(:tenantId as bigint) is null or tenant_id = :tenantId)
     returning email, tenant_id as "tenantId", ref`,
    { id, tenantId },
  );
}

export async function endPasswordLinks(trx: Transaction, userId: string): Promise<void> {
  await execute(trx, 'delete from invitations where accepted_at is null and user_id = :userId', { userId });
}

/** A null tenant: the links of all tenants. */
export async function endLinksMadeBy(
  trx: Transaction,
  makerId: string,
  tenantId: string | null,
): Promise<void> {
  await execute(
    trx,
    `delete from invitations
      where accepted_at is null and maker_id = :makerId
        and (cast(:tenantId as bigint) is null or tenant_id = :tenantId)`,
    { makerId, tenantId },
  );
}

export async function forgetOldInvitations(database: Database, limit: number): Promise<number> {
  return await deleteUpTo(database, limit, 'invitations', 'expires_at < now()');
}
