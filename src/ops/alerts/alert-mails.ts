import { mailLink, mailPage, mailText } from '../../features/mail/mail-page.ts';
import { type MailContent, type Mailer, queueMail } from '../../features/mail/mails.ts';
import { noteAlertMailed } from '../../features/users/user-store.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { query, queryColumn, queryValue } from '../../platform/postgres/sql.ts';
import { type AlertKind, alertPath, anchorOf, KINDS, kindsFor } from './alert-kinds.ts';
import type { ShownAlert } from './alerts.ts';

/** What comes soon after the first alert goes into the same e-mail. */
const GATHER_MINUTES = 1;

/** A user gets at most one e-mail about alerts in so long. */
const EVERY_MINUTES = 60;

const USERS_AT_ONCE = 200;

/** So many alerts are written out; of the rest, the number. */
const MOST_LISTED = 20;

/** Tenants' administrators and operators, unless they chose otherwise. */
const WANTS_MAIL = `coalesce(u.alert_mail, u.is_operator or exists (select from memberships m
  where m.user_id = u.id and m.role = 'admin' and m.disabled_at is null))`;

/** Whether alert `a` is for user `u`: of their tenants, or, for operators, what is reported to operators. */
const CONCERNS = `(a.kind = any (cast(:tenantKinds as text[])) and exists (select from memberships m
     where m.user_id = u.id and m.tenant_id = a.tenant_id and m.disabled_at is null)
   or u.is_operator and a.kind = any (cast(:operatorKinds as text[])))`;

/** What is new to them, or lasts for another day, and they have not marked as read. */
const UNTOLD = `a.resolved_at is null and a.told_at > coalesce(u.alert_mailed_at, '-infinity')
  and not exists (select from alert_reads r where r.alert_id = a.id and r.user_id = u.id)`;

/** An alert that e-mail cannot report is not tried. */
const kinds = () => ({
  tenantKinds: kindsFor('tenant'),
  operatorKinds: kindsFor('operator').filter((kind) => kind !== 'mail_failed'),
});

/** Soon after the first new alert, then at most once an hour. Returns to how many users. */
export async function queueAlertMails(database: Database, mailer: NonNullable<Mailer>): Promise<number> {
  const due = await queryColumn<string>(
    database,
    `select u.id from users u
      where u.disabled_at is null and ${WANTS_MAIL}
        and coalesce(u.alert_mailed_at < now() - interval '${EVERY_MINUTES} minutes', true)
        and exists (select from alerts a where ${UNTOLD} and ${CONCERNS}
                       and a.told_at < now() - interval '${GATHER_MINUTES} minutes')
      order by u.alert_mailed_at nulls first, u.id limit ${USERS_AT_ONCE}`,
    kinds(),
  );
  let queued = 0;
  for (const id of due) {
    if (await database.transaction((trx) => queueMailFor(trx, mailer, id))) queued += 1;
  }
  return queued;
}

export async function alertMailOf(database: Database, userId: string): Promise<boolean> {
  const text = `select ${WANTS_MAIL} from users u where u.id = :userId`;
  const isOn = await queryValue<boolean>(database, text, { userId });
  return isOn ?? false;
}

type MailedAlert = Pick<ShownAlert, 'kind' | 'businessName' | 'wabaId' | 'subject' | 'reason' | 'openedAt'>;

async function queueMailFor(trx: Transaction, mailer: NonNullable<Mailer>, userId: string): Promise<boolean> {
  const [user] = await query<{ email: string; isOperator: boolean }>(
    trx,
    'select email, is_operator as "isOperator" from users where id = :userId and disabled_at is null for update',
    { userId },
  );
  if (user === undefined) return false;
  const alerts = await query<MailedAlert>(
    trx,
    `select a.kind, t.business_name as "businessName", a.waba_id as "wabaId", a.subject, a.reason,
            a.opened_at as "openedAt"
       from users u cross join alerts a left join tenants t on t.id = a.tenant_id
      where u.id = :userId and ${UNTOLD} and ${CONCERNS} order by a.id limit 1000`,
    { userId, ...kinds() },
  );
  if (alerts.length === 0) return false;
  const content = digestOf(alerts, { publicUrl: mailer.publicUrl, isOperator: user.isOperator });
  await queueMail(trx, mailer, { kind: 'alerts', userId, recipient: user.email, ...content });
  await noteAlertMailed(trx, userId);
  return true;
}

function digestOf(
  alerts: readonly MailedAlert[],
  { publicUrl, isOperator }: { publicUrl: string; isOperator: boolean },
): MailContent {
  const [first] = alerts;
  const title = first === undefined ? 'No alerts' : KINDS[first.kind].title;
  const rest = alerts.length - MOST_LISTED;
  const subject = alerts.length === 1 ? `Alert: ${title}` : `${alerts.length} alerts: ${summaryOf(alerts)}`;
  const listed = alerts.slice(0, MOST_LISTED).map((alert) => ({
    title: `${KINDS[alert.kind].title}${alert.businessName === null ? '' : ` · ${alert.businessName}`}`,
    reason: alert.reason,
    url: `${publicUrl}${alertPath(alert, isOperator)}`,
    runbook: `${publicUrl}/portal/runbooks#${anchorOf(alert.kind)}`,
  }));
  const more = rest > 0 ? `${rest} more alerts are on the page of alerts.` : '';
  const all = `${publicUrl}/portal/alerts`;
  const footer =
    'You get this e-mail at most once an hour while there are alerts that you have not read. ' +
    'The page of alerts has a button that stops these e-mails.';
  const text = [
    ...listed.map(({ title, reason, url, runbook }) =>
      [title, reason, `Look: ${url}`, `What to do: ${runbook}`].join('\n'),
    ),
    ...(more === '' ? [] : [more]),
    `All alerts: ${all}`,
    `--\n${footer}`,
  ].join('\n\n');
  const html = mailPage(`${listed
    .map(
      ({ title, reason, url, runbook }) =>
        `<p><strong>${mailText(title)}</strong><br>${mailText(reason)}<br>${mailLink(url, 'Look')} · ${mailLink(runbook, 'What to do')}</p>`,
    )
    .join('\n')}
${more === '' ? '' : `<p>${more}</p>`}
<p>${mailLink(all, 'All alerts')}</p>
<p><small>${footer}</small></p>`);
  return { subject, text: `${text}\n`, html };
}

function summaryOf(alerts: readonly { kind: AlertKind }[]): string {
  const counts = new Map<string, number>();
  for (const { kind } of alerts) counts.set(KINDS[kind].title, (counts.get(KINDS[kind].title) ?? 0) + 1);
  return [...counts].map(([title, count]) => (count === 1 ? title : `${title} (${count})`)).join(', ');
}
