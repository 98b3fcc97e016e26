import type { ErasedTable } from '../../platform/erasing.ts';
import { columnsOf } from '../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { deleteUpTo, execute, query, queryColumn } from '../../platform/postgres/sql.ts';

export type ProblemKind = 'number_restricted' | 'account_restricted' | 'template_stopped' | 'number_shared';

/** A report of upstream about the state of an object; `reason` null: it is in order (again). */
export type ProblemReport = {
  wabaId: string;
  kind: ProblemKind;
  /** Unique within kind and WABA: a number (of `number_shared` its id), a template, or what happened to the account. */
  subject: string;
  reason: string | null;
  reportedAt: Date;
  /** What no later report ends is over by itself after so many days. */
  days: number | null;
};

/** Notes reports in their order. One that is older than what is known of its object, as upstream may send it, changes nothing. */
export async function noteProblems(trx: Transaction, reports: readonly ProblemReport[]): Promise<void> {
  if (reports.length === 0) return;
  const latest = new Map<string, ProblemReport>();
  for (const report of reports) {
    const key = JSON.stringify([report.wabaId, report.kind, report.subject]);
    const known = latest.get(key);
    if (known === undefined || known.reportedAt <= report.reportedAt) latest.set(key, report);
  }
  await execute(
    trx,
    `insert into upstream_troubles as t (waba_id, kind, subject, reason, reported_at, until)
     select waba_id, kind, subject, reason, reported_at, reported_at + days * interval '1 day'
       from unnest(:wabaId::text[], :kind::text[], :subject::text[], :reason::text[], :reportedAt::timestamptz[], :days::integer[])
         as g (waba_id, kind, subject, reason, reported_at, days)
      order by waba_id, kind, subject
     on conflict (waba_id, kind, subject) do update
        set reason = excluded.reason, reported_at = excluded.reported_at, until = excluded.until
      where t.reported_at <= excluded.reported_at`,
    columnsOf([...latest.values()], 'wabaId', 'kind', 'subject', 'reason', 'reportedAt', 'days'),
  );
}

/** The error by which upstream says that it does not deliver a message for want of a payment method. */
export const UNPAID_CODE = 131_042;

const UNPAID_DAYS = 1;

/** The alert is over a day after the last such message: nothing of upstream says that the account is in order. */
export function unpaidReport(wabaId: string, phoneNumberId: string, reportedAt: Date): ProblemReport {
  const reason = `Upstream does not deliver messages of the number ${phoneNumberId}: the payment method of the account is missing or has a problem.`;
  const subject = `payment of ${phoneNumberId}`;
  return { wabaId, kind: 'account_restricted', subject, reason, reportedAt, days: UNPAID_DAYS };
}

type UpstreamProblem = Pick<ProblemReport, 'wabaId' | 'subject' | 'reportedAt'> & {
  tenantId: string;
  reason: string;
};

export async function listUpstreamProblems(
  database: Database,
  kind: ProblemKind,
  limit: number,
): Promise<UpstreamProblem[]> {
  return await query<UpstreamProblem>(
    database,
    `select t.waba_id as "wabaId", w.tenant_id as "tenantId", t.subject, t.reason, t.reported_at as "reportedAt"
       from upstream_troubles t join wabas w on w.waba_id = t.waba_id and w.removed_at is null
      where t.kind = :kind and t.reason is not null and (t.until is null or t.until > now())
      order by t.waba_id, t.subject limit :limit`,
    { kind, limit },
  );
}

/** Why objects of a WABA are not in order, of what was reported since a time. */
export async function listUpstreamProblemsSince(
  database: Database,
  { wabaId, kind, since }: { wabaId: string; kind: ProblemKind; since: Date },
): Promise<string[]> {
  return await queryColumn<string>(
    database,
    `select reason from upstream_troubles
      where waba_id = :wabaId and kind = :kind and reason is not null and reported_at >= :since and (until is null or until > now())
      order by reported_at desc`,
    { wabaId, kind, since },
  );
}

/** What an object is kept in mind for that is in order, so that a late report does not open it again. */
const REMEMBERED_DAYS = 30;

export async function forgetOldProblems(database: Database, limit: number): Promise<number> {
  const which = `reported_at < now() - interval '${REMEMBERED_DAYS} days' and (reason is null or until < now())`;
  return await deleteUpTo(database, limit, 'upstream_troubles', which);
}

export const UPSTREAM_PROBLEMS: ErasedTable = {
  table: 'upstream_troubles',
  count: 'upstreamProblems',
  key: 'waba_id, kind, subject',
};
