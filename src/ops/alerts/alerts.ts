import { type Audited, recordBy, SYSTEM } from '../../platform/audit/audit.ts';
import type { ErasedTable, NamedIn } from '../../platform/erasing.ts';
import { columnsOf } from '../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { deleteUpTo, execute, query, queryValue } from '../../platform/postgres/sql.ts';
import { alertUuidOf, publicAlertId, uuidV7 } from '../../platform/public-ids.ts';
import { invalidValue, RequestError } from '../../platform/request-input.ts';
import { isAboutEndpoint, type NoticeState } from './alert-envelope.ts';
import { type AlertKind, KINDS, kindsFor } from './alert-kinds.ts';
import { insertNotice } from './alert-notices.ts';
import type { Condition, Looked } from './conditions.ts';

/** An alert that lasts is reported again after so long. */
const REMIND_HOURS = 24;

type Changed = Pick<Condition, 'kind' | 'tenantId' | 'wabaId' | 'subject' | 'reason' | 'details'> & {
  id: string;
  isManual: boolean;
};

/**
 * Brings alerts in line with the conditions that were found: opens what is new, ends what is over, and reports both at
 * the operations URLs; what lasts is reported again daily. Returns how many were opened and ended.
 */
export async function followConditions(
  database: Database,
  looked: readonly Looked[],
): Promise<{ opened: number; ended: number }> {
  const found = looked.flatMap((look) => ('conditions' in look ? look.conditions : []));
  const whole = looked.flatMap((look) => ('conditions' in look && look.isWhole ? [look.kind] : []));
  let opened = 0;
  for (let from = 0; from < found.length; from += MOST_AT_ONCE) {
    const some = found.slice(from, from + MOST_AT_ONCE);
    opened += await change(database, 'opened', async (trx) => {
      await endThoseThatCameAgain(trx, some);
      return await openNew(trx, some);
    });
  }
  let ended = 0;
  for (let last = MOST_AT_ONCE; last === MOST_AT_ONCE; ended += last)
    last = await change(database, 'resolved', (trx) => endOthers(trx, found, whole));
  await change(database, 'lasting', takeReminders);
  return { opened, ended };
}

/** Changes of one commit. Until it is over, no other change of the installation gets its place in the audit chain. */
const MOST_AT_ONCE = 200;

/** Returns how many alerts were changed, with those that an operator had resolved. */
async function change(
  database: Database,
  state: NoticeState,
  run: (trx: Transaction) => Promise<Changed[]>,
): Promise<number> {
  return await database.transaction(async (trx) => {
    const changed = await run(trx);
    for (const alert of changed.filter(({ isManual }) => !isManual)) {
      await tell(trx, alert, state);
      if (state !== 'lasting' && alert.kind !== 'operations_hook_failing') await note(trx, alert, state);
    }
    return changed.length;
  });
}

const CHANGED =
  'a.id, a.kind, a.tenant_id as "tenantId", a.waba_id as "wabaId", a.subject, a.reason, a.details';

/** What happens again is over where an operator resolved it, and new again to those who have read of it. */
async function endThoseThatCameAgain(trx: Transaction, found: readonly Condition[]): Promise<void> {
  const again = found.filter(({ latestAt }) => latestAt !== null);
  if (again.length === 0) return;
  const latest = {
    kinds: again.map(({ kind }) => kind),
    subjects: again.map(({ subject }) => subject),
    latestAt: again.map(({ latestAt }) => latestAt),
  };
  const came = `unnest(cast(:kinds as text[]), cast(:subjects as text[]), cast(:latestAt as timestamptz[]))
         as f (kind, subject, latest_at)`;
  await execute(
    trx,
    `update alerts a set over_at = now() from ${came}
      where a.kind = f.kind and a.subject = f.subject and a.over_at is null and a.resolved_at < f.latest_at`,
    latest,
  );
  await execute(
    trx,
    `delete from alert_reads r using alerts a, ${came}
      where a.kind = f.kind and a.subject = f.subject and a.over_at is null and a.resolved_at is null
        and r.alert_id = a.id and r.read_at < f.latest_at`,
    latest,
  );
}

async function openNew(trx: Transaction, found: readonly Condition[]): Promise<Changed[]> {
  if (found.length === 0) return [];
  const rows = await query<Changed & { isNew: boolean }>(
    trx,
    `insert into alerts as a (id, kind, tenant_id, waba_id, subject, reason, details)
     select * from unnest(:uuidV7s::uuid[], :kind::text[], :tenantId::bigint[], :wabaId::text[], :subject::text[], :reason::text[], :details::jsonb[])
     on conflict (kind, subject) where over_at is null
        do update set reason = excluded.reason, details = excluded.details
        where a.reason <> excluded.reason and a.resolved_at is null
     returning ${CHANGED}, a.xmax = 0 as "isNew", false as "isManual"`,
    {
      uuidV7s: found.map(() => uuidV7(Date.now())),
      ...columnsOf(found, 'kind', 'tenantId', 'wabaId', 'subject', 'reason'),
      details: found.map(({ details }) => JSON.stringify(details)),
    },
  );
  return rows.filter(({ isNew }) => isNew);
}

/** Of kinds that were looked at as a whole, some at a time. */
async function endOthers(
  trx: Transaction,
  found: readonly Condition[],
  kinds: readonly AlertKind[],
): Promise<Changed[]> {
  return await query<Changed>(
    trx,
    `update alerts a set over_at = now(), resolved_at = coalesce(a.resolved_at, now())
      where a.id = any (array(
        select id from alerts o where o.over_at is null and o.kind = any (:kinds::text[])
           and not exists (select from unnest(cast(:ofKind as text[]), cast(:subjects as text[])) as f (kind, subject)
                            where f.kind = o.kind and f.subject = o.subject)
         limit ${MOST_AT_ONCE} for update))
     returning ${CHANGED}, a.resolved_by is not null as "isManual"`,
    { kinds, ofKind: found.map(({ kind }) => kind), subjects: found.map(({ subject }) => subject) },
  );
}

async function takeReminders(trx: Transaction): Promise<Changed[]> {
  return await query<Changed>(
    trx,
    `update alerts a set told_at = now()
      where a.resolved_at is null and a.told_at < now() - interval '${REMIND_HOURS} hours'
     returning ${CHANGED}, false as "isManual"`,
  );
}

/** At the operations URL of its WABA. */
async function tell(trx: Transaction, alert: Changed, state: NoticeState): Promise<void> {
  const { notice, noticeStates } = KINDS[alert.kind];
  const { wabaId, subject, reason, details } = alert;
  if (notice === undefined || wabaId === null || noticeStates?.includes(state) === false) return;
  const endpointId = isAboutEndpoint(notice) ? subject : null;
  await insertNotice(trx, { wabaId, endpointId, alert: notice, state, reason, details });
}

const ID = /^\d+$/;

/** For the operator's program, which follows the audit log. A subject that is no id may be an address, and stays out. */
async function note(trx: Transaction, alert: Changed, state: string): Promise<void> {
  const { id, kind, tenantId, wabaId, subject, details } = alert;
  const detail = {
    kind,
    ...(ID.test(subject) && { subject }),
    ...(KINDS[kind].hasDetailsInFeed && details),
  };
  const target = publicAlertId(id);
  await recordBy(trx, SYSTEM, { tenantId, wabaId, action: `alert.${state}`, target, detail });
}

/** Who looks at alerts: a user of a tenant, or of some of its WABAs, or an operator where `tenantId` is null. */
export type AlertViewer = { userId: string; tenantId: string | null; wabaIds?: readonly string[] | null };

export type ShownAlert = {
  id: string;
  kind: AlertKind;
  tenantId: string | null;
  businessName: string | null;
  wabaId: string | null;
  subject: string;
  reason: string;
  openedAt: Date;
  toldAt: Date;
  resolvedAt: Date | null;
  resolvedBy: string | null;
};

const SHOWN = `a.id, a.kind, a.tenant_id as "tenantId", t.business_name as "businessName", a.waba_id as "wabaId",
  a.subject, a.reason, a.opened_at as "openedAt", a.told_at as "toldAt", a.resolved_at as "resolvedAt",
  a.resolved_by as "resolvedBy"`;

/** SQL of whose alerts are meant; operators get reports of what concerns them, and see all. */
const scopeOf = (viewer: AlertViewer) =>
  viewer.tenantId === null ? 'true' : `${ownerOf(viewer)} and a.kind = any (cast(:kinds as text[]))`;

const ownerOf = ({ wabaIds }: AlertViewer) =>
  `a.tenant_id = cast(:tenantId as bigint)${wabaIds ? ' and a.waba_id = any (cast(:wabaIds as text[]))' : ''}`;

const toldTo = ({ tenantId }: Pick<AlertViewer, 'tenantId'>) =>
  kindsFor(tenantId === null ? 'operator' : 'tenant');

const MOST_COUNTED = 100;

/** How many open alerts were reported to a user who has not read them; counting stops at 100. */
export async function countNewAlerts(database: Database, viewer: AlertViewer): Promise<number> {
  const { tenantId } = viewer;
  const owner = tenantId === null ? '' : `and ${ownerOf(viewer)}`;
  const count = await queryValue<number>(
    database,
    `select count(*)::integer from (
       select from alerts a
        where a.resolved_at is null and a.kind = any (cast(:kinds as text[])) ${owner}
          and not exists (select from alert_reads r where r.alert_id = a.id and r.user_id = cast(:userId as bigint))
        limit ${MOST_COUNTED}) as new`,
    { ...viewer, kinds: toldTo(viewer) },
  );
  return count ?? 0;
}

/** What is listed: `before` is the id of the last alert of the page before. */
export type AlertFilter = { state: 'open' | 'all'; before: string | null; limit: number };

/** The alerts that a viewer may see, the newest first; `isNew`: the bell counts it. */
export async function listAlerts(
  database: Database,
  viewer: AlertViewer,
  { state, before, limit }: AlertFilter,
): Promise<(ShownAlert & { isNew: boolean })[]> {
  return await query<ShownAlert & { isNew: boolean }>(
    database,
    `select ${SHOWN}, a.resolved_at is null and r.user_id is null and a.kind = any (cast(:told as text[])) as "isNew"
       from alerts a left join tenants t on t.id = a.tenant_id
       left join alert_reads r on r.alert_id = a.id and r.user_id = cast(:userId as bigint)
      where ${scopeOf(viewer)} ${state === 'open' ? 'and a.resolved_at is null' : ''}
            ${before === null ? '' : 'and a.id < cast(:before as uuid)'}
      order by a.id desc limit :limit`,
    { ...viewer, kinds: kindsFor('tenant'), told: toldTo(viewer), before, limit },
  );
}

/** Notes that a user has read one alert, or all open ones that the user may see. */
export async function markAlertsRead(
  database: Database,
  viewer: AlertViewer,
  alertId: string | null,
): Promise<void> {
  await execute(
    database,
    `insert into alert_reads (user_id, alert_id)
     select cast(:userId as bigint), a.id from alerts a
      where ${scopeOf(viewer)} and a.resolved_at is null
        ${alertId === null ? '' : 'and a.id = cast(:alertId as uuid)'}
     on conflict do nothing`,
    { ...viewer, kinds: kindsFor('tenant'), alertId },
  );
}

/** Alerts of all tenants and of the installation, or of one WABA, for operators. */
export async function allAlerts(
  { database }: { database: Database },
  { wabaId, state, limit }: { wabaId: string | null; state: 'open' | 'all'; limit: number },
): Promise<(ShownAlert & { alertId: string })[]> {
  const rows = await query<ShownAlert>(
    database,
    `select ${SHOWN} from alerts a left join tenants t on t.id = a.tenant_id
      where ${state === 'open' ? 'a.resolved_at is null' : 'true'} ${wabaId === null ? '' : 'and a.waba_id = :wabaId'}
      order by a.id desc limit :limit`,
    { wabaId, limit },
  );
  return rows.map((row) => ({ ...row, alertId: publicAlertId(row.id) }));
}

/**
 * Resolves an alert for an operator. Its condition opens another one only after it was over, or when it happens again. Throws
 * RequestError: `invalid_value`, `unknown_alert`.
 */
export async function resolveAlert(
  { database, actor }: { database: Database } & Audited,
  alertId: string,
): Promise<{ alertId: string; kind: AlertKind }> {
  const uuid = alertUuidOf(alertId);
  if (uuid === null) throw invalidValue('The id of an alert is alr_ and 32 digits.', 'alert');
  return await database.transaction(async (trx) => {
    const [row] = await query<Pick<ShownAlert, 'kind' | 'tenantId' | 'wabaId' | 'subject'>>(
      trx,
      `update alerts set resolved_at = now(), resolved_by = :name where id = :uuid and resolved_at is null
       returning kind, tenant_id as "tenantId", waba_id as "wabaId", subject`,
      { name: actor.name, uuid },
    );
    if (row === undefined) throw new RequestError('unknown_alert', `There is no open alert ${alertId}.`);
    const { kind, tenantId, wabaId, subject } = row;
    const detail = { kind, subject };
    await recordBy(trx, actor, { tenantId, wabaId, action: 'alert.resolved', target: alertId, detail });
    return { alertId, kind };
  });
}

const KEPT_DAYS = 90;

export async function forgetOldAlerts(database: Database, limit: number): Promise<number> {
  return await deleteUpTo(database, limit, 'alerts', `over_at < now() - ${KEPT_DAYS} * interval '1 day'`);
}

export const ALERT_TABLES: readonly ErasedTable[] = [
  { table: 'alerts', count: 'alerts', key: 'id' },
  { table: 'waba_hours', count: 'activityHours', key: 'waba_id, hour' },
];

export const ALERTS_NAMED_IN: NamedIn = [['alerts', 'resolved_by']];

export async function forgetFailedMail(trx: Transaction, address: string): Promise<void> {
  await execute(trx, `delete from alerts where kind = 'mail_failed' and subject = :address`, { address });
}
