import { sealedSecret } from '../../platform/crypto/sealed-secret.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { deleteUpTo, execute, query, queryOne, queryOnly, queryValue } from '../../platform/postgres/sql.ts';

export const SETUP_TOKEN = sealedSecret({ table: 'setup_links', id: ['id', 'bigint'], secret: 'token' });

/** `signup`: the customer consents in upstream's dialog; `steps`: enters the access token of a system user. */
export const SETUP_MODES = ['signup', 'steps'] as const;
type SetupMode = (typeof SETUP_MODES)[number];

/** `coexistence`: the number stays in the WhatsApp Business app too. */
export const SETUP_CONNECTIONS = ['cloud', 'coexistence'] as const;
type SetupConnection = (typeof SETUP_CONNECTIONS)[number];

export const SETUP_STATES = [
  'open',
  'started',
  'authorized',
  'subscribed',
  'registered',
  'done',
  'failed',
  'cancelled',
  'expired',
  'revoked',
] as const;
export type SetupState = (typeof SETUP_STATES)[number];

/** States that nothing leaves any more. */
export const ENDED: readonly SetupState[] = ['done', 'expired', 'revoked'];

/** Upstream has authorized us: a workflow does the rest. */
export const WORKING: readonly SetupState[] = ['authorized', 'subscribed', 'registered'];

export const FAILURE_CODES = [
  'login_cancelled',
  'flow_abandoned',
  'upstream_error',
  'code_expired',
  'code_lost',
  'permission_missing',
  'no_waba',
  'no_number',
  'waba_taken',
  'number_taken',
  'subscription_failed',
  'pin_required',
  'registration_refused',
  'registration_rate_limited',
  'coexistence_sync_late',
] as const;
export type FailureCode = (typeof FAILURE_CODES)[number];

export type SetupStep = 'login' | 'permissions' | 'waba' | 'subscribe' | 'number' | 'register' | 'check';

export type SetupFailure = {
  /** A step of ours, or the one of the dialog at which the customer left it. */
  step: string;
  code: FailureCode;
  /** The link resumes at this step. */
  retryable: boolean;
  /** For people. */
  message: string;
  upstreamCode: number | null;
  /** ISO 8601: before it, trying again is in vain; null: now. */
  retryAt: string | null;
};

/** What the customer may choose from. */
export type SetupChoice = { of: 'waba' | 'number'; options: { id: string; label: string }[] };

/** Done, but not quite as it should be. */
export type Attention = 'number_in_review' | 'no_endpoint';

export type SetupLink = {
  id: string;
  tenantId: string;
  mode: SetupMode;
  connections: SetupConnection[];
  reconnectPhoneNumberId: string | null;
  successUrl: string;
  failureUrl: string;
  clientState: string | null;
  state: SetupState;
  /** Where a failed link resumes; null: it did not fail since upstream authorized it. */
  resumes: SetupState | null;
  failure: SetupFailure | null;
  nonceHash: Buffer | null;
  tokenSealed: string | null;
  authorizedAt: Date | null;
  choice: SetupChoice | null;
  wabaId: string | null;
  phoneNumberId: string | null;
  tries: number;
  pinTries: number;
  attention: Attention[];
  createdAt: Date;
  expiresAt: Date;
  changedAt: Date;
};

/** The WABA that the tenant has by this link; one that was only named may be another tenant's. */
export function broughtWaba({
  wabaId,
  tokenSealed,
}: Pick<SetupLink, 'wabaId' | 'tokenSealed'>): string | null {
  return tokenSealed === null ? wabaId : null;
}

/** A link past its time is expired, whether or not housekeeping has come by. */
const STATE = `case when l.expires_at <= now() and l.state not in ('done', 'revoked') then 'expired' else l.state end`;

const LINK = `l.id, l.tenant_id as "tenantId", l.mode, l.connections, l.reconnect_phone_number_id as "reconnectPhoneNumberId",
  l.success_url as "successUrl", l.failure_url as "failureUrl", l.client_state as "clientState", ${STATE} as state, l.resumes, l.failure,
  l.nonce_hash as "nonceHash", l.token_sealed as "tokenSealed", l.authorized_at as "authorizedAt", l.choice, l.waba_id as "wabaId",
  l.phone_number_id as "phoneNumberId", l.tries, l.pin_tries as "pinTries", l.attention,
  l.created_at as "createdAt", l.expires_at as "expiresAt", l.changed_at as "changedAt"`;

export type NewSetupLink = Pick<
  SetupLink,
  'tenantId' | 'mode' | 'connections' | 'reconnectPhoneNumberId' | 'successUrl' | 'failureUrl' | 'clientState'
> & { tokenHash: Buffer; expiresInHours: number };

export async function insertSetupLink(trx: Transaction, link: NewSetupLink): Promise<SetupLink> {
  return await queryOnly<SetupLink>(
    trx,
    `insert into setup_links as l (token_hash, tenant_id, mode, connections, reconnect_phone_number_id, success_url, failure_url, client_state, expires_at)
     values (:tokenHash, :tenantId, :mode, cast(:connections as text[]), :reconnectPhoneNumberId, :successUrl, :failureUrl, :clientState,
             now() + :expiresInHours * interval '1 hour')
     returning ${LINK}`,
    link,
  );
}

/** How many links of a tenant have not ended. */
export async function countOpenSetupLinks(trx: Transaction, tenantId: string): Promise<number> {
  const text = `select count(*)::integer from setup_links l
                 where l.tenant_id = :tenantId and l.expires_at > now() and l.state not in ('done', 'expired', 'revoked')`;
  return (await queryValue<number>(trx, text, { tenantId })) ?? 0;
}

export async function findSetupLink(
  database: Database,
  by: { id: string } | { tokenHash: Buffer },
): Promise<SetupLink | null> {
  const which = 'id' in by ? 'l.id = :id' : 'l.token_hash = :tokenHash';
  return await queryOne<SetupLink>(database, `select ${LINK} from setup_links l where ${which}`, by);
}

/** No other process changes it until the transaction ends. */
export async function lockSetupLink(trx: Transaction, id: string): Promise<SetupLink | null> {
  return await queryOne<SetupLink>(
    trx,
    `select ${LINK} from setup_links l where l.id = :id for no key update`,
    {
      id,
    },
  );
}

type WantedLinks = {
  id?: string | null;
  tenantId: string | null;
  wabaId?: string | null;
  state: SetupState | null;
  beforeId: string | null;
  limit: number;
};

/** Those before `beforeId`, or the newest; null: of whichever. */
export async function listSetupLinks(
  database: Database,
  { id = null, wabaId = null, ...given }: WantedLinks,
): Promise<SetupLink[]> {
  return await query<SetupLink>(
    database,
    `select ${LINK} from setup_links l
      where l.id < coalesce(cast(:beforeId as bigint), 9223372036854775807)
        and (cast(:id as bigint) is null or l.id = :id)
        and (cast(:tenantId as bigint) is null or l.tenant_id = :tenantId)
        and (cast(:wabaId as text) is null or l.waba_id = :wabaId and l.token_sealed is null)
        and (cast(:state as text) is null or ${STATE} = :state)
      order by l.id desc limit :limit`,
    { id, wabaId, ...given },
  );
}

export type SetupChange = Partial<
  Pick<
    SetupLink,
    | 'state'
    | 'resumes'
    | 'failure'
    | 'nonceHash'
    | 'tokenSealed'
    | 'authorizedAt'
    | 'choice'
    | 'wabaId'
    | 'phoneNumberId'
    | 'tries'
    | 'pinTries'
    | 'attention'
  >
>;

const COLUMNS = {
  state: 'state = :state',
  resumes: 'resumes = :resumes',
  failure: 'failure = cast(:failure as jsonb)',
  nonceHash: 'nonce_hash = :nonceHash',
  tokenSealed: 'token_sealed = :tokenSealed',
  authorizedAt: 'authorized_at = :authorizedAt',
  choice: 'choice = cast(:choice as jsonb)',
  wabaId: 'waba_id = :wabaId',
  phoneNumberId: 'phone_number_id = :phoneNumberId',
  tries: 'tries = :tries',
  pinTries: 'pin_tries = :pinTries',
  attention: 'attention = cast(:attention as text[])',
} as const satisfies Record<keyof SetupChange, string>;

/** Writes what is given to a link that the caller has locked. */
export async function saveSetupLink(trx: Transaction, id: string, change: SetupChange): Promise<void> {
  const { failure, choice, ...plain } = change;
  const names = Object.keys(change) as (keyof SetupChange)[];
  const text = `update setup_links set ${names.map((name) => COLUMNS[name]).join(', ')}, changed_at = now() where id = :id`;
  await execute(trx, text, { id, ...plain, failure: jsonOf(failure), choice: jsonOf(choice) });
}

function jsonOf(value: object | null | undefined): string | null {
  return value === null || value === undefined ? null : JSON.stringify(value);
}

/** Links that passed their time and are not marked; locked, but those that others hold. */
export async function lockPassedLinks(trx: Transaction, limit: number): Promise<SetupLink[]> {
  return await query<SetupLink>(
    trx,
    `select ${LINK} from setup_links l where l.expires_at <= now() and l.state not in ('done', 'expired', 'revoked')
      order by l.expires_at limit :limit for no key update skip locked`,
    { limit },
  );
}

export type LinkInDialog = Pick<SetupLink, 'id' | 'reconnectPhoneNumberId'>;

/** Longer ago, the dialog leads to nothing here any more. */
const DIALOG_HOURS = 1;

/**
 * Links, of one tenant or (null) of all, whose customer is in upstream's dialog and may have shared the WABA there; none where another link has brought it
 * already.
 */
export async function listLinksInDialog(
  trx: Transaction,
  given: { wabaId: string; tenantId: string | null; reportedAt: Date },
): Promise<LinkInDialog[]> {
  return await query<LinkInDialog>(
    trx,
    `select l.id, l.reconnect_phone_number_id as "reconnectPhoneNumberId" from setup_links l
      where l.state = 'started' and l.mode = 'signup' and l.failure is null and l.expires_at > now()
        and l.changed_at > now() - interval '${DIALOG_HOURS} hour' and l.changed_at < :reportedAt::timestamptz + interval '1 minute'
        and (cast(:tenantId as bigint) is null or l.tenant_id = :tenantId)
        and not exists (select from setup_links o where o.waba_id = :wabaId and o.authorized_at > :reportedAt::timestamptz - interval '1 minute')
      order by l.id limit 100`,
    given,
  );
}

/** Unless the link has gone on, or is about to: another transaction has it locked then. */
export async function markCodeLost(trx: Transaction, id: string, failure: SetupFailure): Promise<void> {
  await execute(
    trx,
    `update setup_links set failure = cast(:failure as jsonb), changed_at = now()
      where id = (select id from setup_links where id = :id and state = 'started' for no key update skip locked)`,
    { id, failure: jsonOf(failure) },
  );
}

/** How long the way back from the dialog may take: its code lives 30 seconds. */
const RETURN_SECONDS = 60;

/** Links whose dialog was finished so long ago, without a browser that came back; locked, but those that others hold. */
export async function lockLostReturns(trx: Transaction, limit: number): Promise<SetupLink[]> {
  return await query<SetupLink>(
    trx,
    `select ${LINK} from setup_links l
      where l.expires_at > now() and l.state = 'started' and l.failure is not null
        and l.changed_at < now() - interval '${RETURN_SECONDS} seconds'
      order by l.expires_at limit :limit for no key update skip locked`,
    { limit },
  );
}

/** Links that have not ended and brought this WABA, locked. */
export async function lockLinksOfWaba(trx: Transaction, wabaId: string): Promise<SetupLink[]> {
  return await query<SetupLink>(
    trx,
    `select ${LINK} from setup_links l
      where l.waba_id = :wabaId and l.token_sealed is null and l.state not in ('done', 'expired', 'revoked') order by l.id for no key update`,
    { wabaId },
  );
}

/** The tenant is removed, and its row may stay. */
export async function forgetLinksOfTenant(trx: Transaction, tenantId: string): Promise<void> {
  await execute(trx, 'delete from setup_links where tenant_id = :tenantId', { tenantId });
}

/** So long, a link that is over tells how it went. */
const KEPT_DAYS = 30;

/** Removes up to `limit` links that ended so long ago; for housekeeping. */
export async function forgetOldSetupLinks(database: Database, limit: number): Promise<number> {
  const which = `state in ('done', 'expired', 'revoked') and expires_at < now() - interval '${KEPT_DAYS} days'`;
  return await deleteUpTo(database, limit, 'setup_links', which);
}
