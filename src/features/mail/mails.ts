import { sealedSecret } from '../../platform/crypto/sealed-secret.ts';
import type { SecretBox } from '../../platform/crypto/secret-box.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { deleteUpTo, execute, query, queryOne } from '../../platform/postgres/sql.ts';
import { uuidV7 } from '../../platform/public-ids.ts';
import { finishTask, insertWorkflowTasks, type TaskKind } from '../../platform/temporal/workflow-tasks.ts';

/** What an e-mail says while it is on its way: it can hold a one-time link. */
export const MAIL_CONTENT = sealedSecret({ table: 'mails', id: ['id', 'uuid'], secret: 'content' });

export type MailContent = { subject: string; text: string; html: string };

export type NewMail = MailContent & {
  kind: 'alerts' | 'invitation' | 'password_link';
  /** Whose it is; null: of a person without an account. */
  userId: string | null;
  recipient: string;
};

/** What a service needs to send e-mails; null where the installation sends none. */
export type Mailer = { secretBox: SecretBox; publicUrl: string } | null;

export function mailerOf(
  { mail, api }: { mail: { smtpUrl: string }; api: { publicUrl: string } },
  secretBox: SecretBox,
): Mailer {
  return mail.smtpUrl === '' ? null : { secretBox, publicUrl: api.publicUrl };
}

export const SEND_MAIL: TaskKind = { workflowType: 'sendMail', summary: 'send an e-mail' };

export function mailWorkflowId(mailId: string): string {
  return `mail/${mailId}`;
}

/** Has an e-mail sent once the transaction commits; nothing waits for it. Returns its id. */
export async function queueMail(
  trx: Transaction,
  { secretBox }: NonNullable<Mailer>,
  { kind, userId, recipient, ...content }: NewMail,
): Promise<string> {
  const id = uuidV7(Date.now());
  const sealed = secretBox.seal(JSON.stringify(content), MAIL_CONTENT.place(id));
  const text =
    'insert into mails (id, kind, user_id, recipient, content_sealed) values (:id, :kind, :userId, :recipient, :sealed)';
  await execute(trx, text, { id, kind, userId, recipient, sealed });
  const task = { workflowId: mailWorkflowId(id), kind: SEND_MAIL };
  await insertWorkflowTasks(trx, [{ ...task, wabaId: '', eventId: '', argument: { mailId: id } }]);
  return id;
}

export type MailToSend = {
  kind: NewMail['kind'];
  recipient: string;
  attempts: number;
  /** Null: it is sent or given up. */
  contentSealed: string | null;
};

/** The e-mail with this id; null: there is none, or its user is gone. */
export async function findMail(database: Database, mailId: string): Promise<MailToSend | null> {
  const text =
    'select kind, recipient, attempts, content_sealed as "contentSealed" from mails where id = :mailId';
  return await queryOne<MailToSend>(database, text, { mailId });
}

/** Notes what came of an attempt. The content goes with the last one, and with it the task. */
export async function recordMail(
  database: Database,
  mailId: string,
  outcome: { state: 'sent' | 'waiting' | 'failed'; attempted: boolean; error: string | null },
): Promise<void> {
  const { state, attempted, error } = outcome;
  await database.transaction(async (trx) => {
    await execute(
      trx,
      `update mails set attempts = attempts + cast(:made as integer), last_error = :error,
              content_sealed = case when :state = 'waiting' then content_sealed end,
              sent_at = case when :state = 'sent' then clock_timestamp() end,
              failed_at = case when :state = 'failed' then clock_timestamp() end
        where id = :mailId and content_sealed is not null`,
      { mailId, made: attempted ? 1 : 0, state, error },
    );
    if (state !== 'waiting') await finishTask(trx, mailWorkflowId(mailId));
  });
}

export type FailedMail = { recipient: string; error: string; failedAt: Date };

/** The last failure of each recipient in the last 24 hours; up to `limit`. */
export async function listFailedMails(database: Database, limit: number): Promise<FailedMail[]> {
  return await query<FailedMail>(
    database,
    `select distinct on (recipient) recipient, coalesce(last_error, 'no reason given') as error,
            failed_at as "failedAt"
       from mails where failed_at > now() - interval '24 hours' order by recipient, failed_at desc limit :limit`,
    { limit },
  );
}

const KEPT_DAYS = 30;

export async function forgetOldMails(database: Database, limit: number): Promise<number> {
  return await deleteUpTo(database, limit, 'mails', `created_at < now() - ${KEPT_DAYS} * interval '1 day'`);
}

export async function deleteMailsTo(trx: Transaction, recipient: string): Promise<number> {
  return await execute(trx, 'delete from mails where recipient = :recipient', { recipient });
}
