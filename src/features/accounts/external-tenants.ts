import { type Audited, recordBy } from '../../platform/audit/audit.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query, queryOne } from '../../platform/postgres/sql.ts';
import { checkDescription, invalidValue, RequestError } from '../../platform/request-input.ts';
import { createTenant, knownTenant, type PhoneNumber, renameTenant } from './accounts.ts';
import type { UsageAlert } from './usage-alerts.ts';

type Tools = { database: Database } & Audited;

/** Texts by name, which the operator's program keeps with a tenant. */
export type TenantMetadata = Readonly<Record<string, string>>;

export type ExternalTenant = {
  userId: string;
  /** Null: the operator's program has not named it. */
  externalId: string | null;
  businessName: string;
  state: 'active' | 'suspended';
  suspendReason: string | null;
  metadata: TenantMetadata;
  usageAlerts: UsageAlert[];
  wabas: { wabaId: string; hasAccessToken: boolean; phoneNumbers: PhoneNumber[] }[];
  createdAt: Date;
  updatedAt: Date;
};

/** A name that the operator's program gives; it stands in paths and logs. */
export const REFERENCE = /^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$/;

/** Throws RequestError `invalid_value` with `param`. */
export function checkReference(param: string, text: string): string {
  if (REFERENCE.test(text)) return text;
  const message = 'must be 1 to 128 letters, digits or . _ ~ - and begin with a letter or digit.';
  throw invalidValue(`The ${param} ${message}`, param);
}

/** One change of what a program names at a time, so that equal requests make one thing. Holds up nothing else. */
export async function lockExternalId(trx: Transaction, externalId: string): Promise<void> {
  const text = `select pg_advisory_xact_lock(hashtextextended('external id ' || cast(:externalId as text), 0))`;
  await query(trx, text, { externalId });
}

const NUMBERS = `select coalesce(jsonb_agg(jsonb_build_object('phoneNumberId', n.phone_number_id,
    'displayPhoneNumber', n.display_phone_number, 'verifiedName', n.verified_name, 'qualityRating', n.quality_rating)
    order by n.phone_number_id), '[]') from phone_numbers n where n.waba_id = w.waba_id and n.removed_at is null`;

const TENANT = `t.id as "userId", t.external_id as "externalId", t.business_name as "businessName",
  case when t.suspended_at is null then 'active' else 'suspended' end as state, t.suspend_reason as "suspendReason",
  t.metadata, t.usage_alerts as "usageAlerts", t.created_at as "createdAt", t.updated_at as "updatedAt",
  (select coalesce(jsonb_agg(jsonb_build_object('wabaId', w.waba_id,
     'hasAccessToken', w.access_token_sealed is not null, 'phoneNumbers', (${NUMBERS})) order by w.waba_id), '[]')
     from wabas w where w.tenant_id = t.id and w.removed_at is null) as wabas`;

/** The tenant of this name. Throws RequestError: `invalid_value`, `unknown_tenant`. */
export async function externalTenant(database: Database, externalId: string): Promise<ExternalTenant> {
  const tenant = await findExternalTenant(database, checkReference('externalId', externalId));
  if (tenant === null) throw new RequestError('unknown_tenant', 'There is no such tenant.');
  return tenant;
}

async function findExternalTenant(database: Database, externalId: string): Promise<ExternalTenant | null> {
  const text = `select ${TENANT} from tenants t where t.external_id = :externalId and t.removed_at is null`;
  return await queryOne<ExternalTenant>(database, text, { externalId });
}

/** What the operator's program calls tenants, by userId; null, or absent: it has no name for it any more. */
export async function namesOfTenants(
  database: Database,
  userIds: readonly string[],
): Promise<Map<string, string | null>> {
  if (userIds.length === 0) return new Map();
  const rows = await query<{ id: string; externalId: string | null }>(
    database,
    'select id, external_id as "externalId" from tenants where id = any (cast(:userIds as bigint[]))',
    { userIds },
  );
  return new Map(rows.map(({ id, externalId }) => [id, externalId]));
}

/** The first tenants behind `afterId`; those without a name of a program too, so that they can be given one. */
export async function listExternalTenants(
  database: Database,
  { afterId, limit, state, updatedSince }: TenantFilter & { afterId: string; limit: number | null },
): Promise<ExternalTenant[]> {
  const conditions = [
    state !== undefined && `t.suspended_at is ${state === 'active' ? '' : 'not '}null`,
    updatedSince !== undefined && 't.updated_at >= :updatedSince',
  ].filter((one) => one !== false);
  return await query<ExternalTenant>(
    database,
    `select ${TENANT} from tenants t
      where t.id > cast(:afterId as bigint) and t.removed_at is null ${conditions.map((one) => `and ${one}`).join(' ')}
      order by t.id limit cast(:limit as integer)`,
    { afterId, limit, ...(updatedSince !== undefined && { updatedSince }) },
  );
}

export type TenantFilter = { state?: 'active' | 'suspended' | undefined; updatedSince?: Date | undefined };

/**
 * Makes a tenant of this name, or brings it up to date; what is left out stays. `userId` gives the name to a tenant that has none.
 * `countNew` may refuse a new one. Throws RequestError: `invalid_value`, `unknown_tenant`, `tenant_has_external_id`, `external_id_taken`.
 */
export async function putTenant(
  { database, actor }: Tools,
  externalId: string,
  given: { businessName: string; metadata?: TenantMetadata; userId?: string },
  countNew: (trx: Transaction) => Promise<void>,
): Promise<{ made: boolean; tenant: ExternalTenant }> {
  const name = checkReference('externalId', externalId);
  checkMetadata(given.metadata ?? {});
  return await database.transaction(async (trx) => {
    await lockExternalId(trx, name);
    const tools = { database: trx, actor };
    const known = await findExternalTenant(trx, name);
    if (known !== null && given.userId !== undefined && given.userId !== known.userId) throw taken(name);
    let userId = known?.userId ?? given.userId;
    if (known === null && userId === undefined) {
      userId = (await createTenant(tools, given.businessName)).userId;
      await countNew(trx);
    }
    if (userId === undefined) throw new Error('the tenant has no id');
    if (known === null) await nameTenant(tools, userId, name);
    const before = known ?? (await externalTenant(trx, name));
    if (before.businessName !== given.businessName.trim())
      await renameTenant(tools, userId, given.businessName);
    if (given.metadata !== undefined) await saveMetadata(tools, before, given.metadata);
    return { made: known === null, tenant: await externalTenant(trx, name) };
  });
}

/** Throws RequestError: `unknown_tenant`, `tenant_has_external_id`. */
async function nameTenant({ database, actor }: Tools, userId: string, externalId: string): Promise<void> {
  await knownTenant(database, userId);
  const text = `update tenants set external_id = :externalId, updated_at = now()
                 where id = :userId and external_id is null and removed_at is null`;
  if ((await execute(database, text, { externalId, userId })) === 0) {
    throw new RequestError(
      'tenant_has_external_id',
      `The tenant with userId ${userId} has another external id.`,
    );
  }
  await note({ database, actor }, userId, 'tenant.external_id_set', { externalId });
}

const MAX_PAIRS = 20;
const MAX_NAME_CHARS = 40;
const MAX_VALUE_CHARS = 500;

function checkMetadata(metadata: TenantMetadata): void {
  const pairs = Object.entries(metadata);
  const isFine = ([name, value]: [string, string]) =>
    name.length >= 1 && name.length <= MAX_NAME_CHARS && value.length <= MAX_VALUE_CHARS;
  if (pairs.length <= MAX_PAIRS && pairs.every(isFine)) return;
  const most = `${MAX_PAIRS} pairs, with names of ${MAX_NAME_CHARS} characters and texts of ${MAX_VALUE_CHARS}`;
  throw invalidValue(`The metadata may have at most ${most}.`, 'metadata');
}

async function saveMetadata(
  { database, actor }: Tools,
  before: ExternalTenant,
  metadata: TenantMetadata,
): Promise<void> {
  const text = `update tenants set metadata = cast(:metadata as jsonb), updated_at = now()
                 where id = :userId and metadata <> cast(:metadata as jsonb)`;
  const { userId } = before;
  const changed = await execute(database, text, { metadata: JSON.stringify(metadata), userId });
  // Values may be anything, so the entry names the pairs alone.
  if (changed > 0)
    await note({ database, actor }, userId, 'tenant.metadata_set', {
      names: Object.keys(metadata).join(', '),
    });
}

export type TenantChange = {
  businessName?: string;
  state?: 'active' | 'suspended';
  suspendReason?: string;
  newExternalId?: string;
};

/**
 * Renames, suspends or resumes a tenant, or gives it another name of the program's. All or nothing.
 * Throws RequestError: `invalid_value`, `unknown_tenant`, `external_id_taken`.
 */
export async function changeTenant(
  { database, actor }: Tools,
  externalId: string,
  change: TenantChange,
): Promise<ExternalTenant> {
  const { businessName, state, suspendReason, newExternalId = externalId } = change;
  checkReference('externalId', externalId);
  checkReference('newExternalId', newExternalId);
  if (suspendReason !== undefined && state !== 'suspended') {
    throw invalidValue('A suspendReason needs the state "suspended".', 'suspendReason');
  }
  return await database.transaction(async (trx) => {
    const tools = { database: trx, actor };
    // In one order everywhere: two that exchange names wait for each other only once.
    for (const name of [...new Set([externalId, newExternalId])].sort()) await lockExternalId(trx, name);
    const before = await externalTenant(trx, externalId);
    if (businessName !== undefined && businessName.trim() !== before.businessName) {
      await renameTenant(tools, before.userId, businessName);
    }
    if (state !== undefined) await setState(tools, before, state, suspendReason);
    if (newExternalId !== externalId) await giveNewName(tools, before, newExternalId);
    return await externalTenant(trx, newExternalId);
  });
}

async function setState(
  { database, actor }: Tools,
  before: ExternalTenant,
  state: 'active' | 'suspended',
  given?: string,
): Promise<void> {
  const { userId } = before;
  const reason =
    state === 'active' ? null : checkDescription('The suspendReason', given ?? before.suspendReason ?? '');
  if (state === before.state && reason === before.suspendReason) return;
  const since = state === 'active' ? 'null' : 'coalesce(suspended_at, now())';
  const text = `update tenants set suspended_at = ${since}, suspend_reason = :reason, updated_at = now() where id = :userId`;
  await execute(database, text, { reason, userId });
  const action = state === 'active' ? 'tenant.resumed' : 'tenant.suspended';
  await note({ database, actor }, userId, action, { reason });
}

async function giveNewName(
  { database, actor }: Tools,
  { userId }: ExternalTenant,
  externalId: string,
): Promise<void> {
  if ((await findExternalTenant(database, externalId)) !== null) throw taken(externalId, 'newExternalId');
  const text = 'update tenants set external_id = :externalId, updated_at = now() where id = :userId';
  await execute(database, text, { externalId, userId });
  await note({ database, actor }, userId, 'tenant.external_id_set', { externalId });
}

async function note(
  { database, actor }: Tools,
  userId: string,
  action: string,
  detail: Record<string, string | null>,
): Promise<void> {
  const target = `tenant ${userId}`;
  await recordBy(database, actor, { tenantId: userId, wabaId: null, target, action, detail });
}

function taken(externalId: string, param = 'userId'): RequestError {
  return new RequestError('external_id_taken', `Another tenant has the external id ${externalId}.`, param);
}
