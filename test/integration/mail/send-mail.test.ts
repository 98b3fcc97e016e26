import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { mailWorkflowId, queueMail } from '../../../src/features/mail/mails.ts';
import { type MailSettings, makeMailSender } from '../../../src/features/mail/smtp.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import {
  MAIL_PASSWORD,
  MAIL_USER,
  type MailServer,
  partOf,
  startMailServer,
} from '../../support/mail-server.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { type OperationsStack, startOperationsStack } from '../endpoints/operations-stack.ts';

const FROM = 'Heliograph <alerts@gateway.example>';

let server: MailServer;
beforeEach(async () => {
  server = await startMailServer();
});
afterEach(() => server.close());

const settings = (given: Partial<MailSettings> = {}): MailSettings => ({
  smtpUrl: server.url,
  tls: 'required',
  caFile: server.caFile,
  from: FROM,
  ...given,
});

const content = {
  subject: 'Endpoint fällt aus',
  text: 'Line one\n\nZeile zwei: ü\n',
  html: '<p>Zeile zwei: ü</p>',
};
const mail = (recipient = 'asha@store.example') => ({ id: 'mail-1', recipient, ...content });

describe('over SMTP', () => {
  test('a mail goes out encrypted and signed in, as text and as HTML', async () => {
    expect(await makeMailSender(settings()).send(mail())).toMatchObject({ kind: 'sent' });
    const [received] = server.received;
    expect(received).toMatchObject({
      from: 'alerts@gateway.example',
      to: ['asha@store.example'],
      isEncrypted: true,
      user: MAIL_USER,
    });
    const raw = received?.raw ?? '';
    expect(raw).toMatch(/^From: Heliograph <alerts@gateway\.example>$/m);
    expect(raw).toMatch(/^Message-ID: <mail-1@gateway\.example>$/m);
    expect(raw).toMatch(/^Auto-Submitted: auto-generated$/m);
    expect(partOf(raw, 'text/plain')).toContain('Zeile zwei: ü');
    expect(partOf(raw, 'text/html')).toContain('<p>Zeile zwei: ü</p>');
  });

  test('a server without STARTTLS gets nothing, unless that is allowed', async () => {
    const plain = await startMailServer({ isPlain: true });
    try {
      const smtpUrl = plain.url;
      expect(await makeMailSender(settings({ smtpUrl })).send(mail())).toMatchObject({ kind: 'failed' });
      expect(plain.received).toEqual([]);
      for (const tls of ['opportunistic', 'off'] as const) {
        expect(await makeMailSender(settings({ smtpUrl, tls })).send(mail())).toMatchObject({ kind: 'sent' });
      }
      expect(plain.received.map(({ isEncrypted }) => isEncrypted)).toEqual([false, false]);
    } finally {
      await plain.close();
    }
  });

  test('a certificate of an unknown authority is not trusted', async () => {
    const outcome = await makeMailSender(settings({ caFile: '' })).send(mail());
    expect(outcome).toMatchObject({ kind: 'failed', reason: expect.stringMatching(/self-signed/i) });
    expect(server.received).toEqual([]);
  });

  test('a wrong password may be mended, and is not in the reason', async () => {
    const url = new URL(server.url);
    url.password = 'wrong-secret';
    const outcome = await makeMailSender(settings({ smtpUrl: url.href })).send(mail());
    expect(outcome.kind).toBe('failed');
    expect(JSON.stringify(outcome)).not.toContain('wrong-secret');
  });

  test('a recipient that the server refuses is final, one that it defers is not', async () => {
    const sender = makeMailSender(settings());
    expect(await sender.send(mail('nobody@store.example'))).toMatchObject({
      kind: 'refused',
      reason: expect.stringMatching(/no such mailbox/),
    });
    expect(await sender.send(mail('later@store.example'))).toMatchObject({ kind: 'failed' });
  });

  test('content that the server refuses is final; a sender that it refuses is not, at whatever step: that can be mended', async () => {
    expect(await makeMailSender(settings()).send(mail('spam@store.example'))).toMatchObject({
      kind: 'refused',
      reason: expect.stringMatching(/554.*content rejected/),
    });
    for (const [from, reason] of [
      ['foreign@other.example', /553.*not owned/],
      ['hidden@other.example', /553.*5\.7\.1 sender address rejected/],
    ] as const) {
      const outcome = await makeMailSender(settings({ from })).send(mail());
      expect(outcome).toMatchObject({ kind: 'failed', reason: expect.stringMatching(reason) });
    }
    expect(server.received).toEqual([]);
  });

  test('an address cannot add recipients or headers', async () => {
    const outcome = await makeMailSender(settings()).send(
      mail('a@store.example>, <b@store.example\r\nBcc: c@store.example'),
    );
    expect(outcome.kind === 'sent' ? server.received.flatMap(({ to }) => to) : []).not.toContain(
      'c@store.example',
    );
    expect(server.received.map(({ raw }) => raw).join('')).not.toMatch(/^Bcc:/m);
  });
});

describe('in a workflow', () => {
  let stack: OperationsStack;
  let port: number;

  beforeAll(async () => {
    // The port of a server that comes and goes.
    const first = await startMailServer();
    port = first.port;
    await first.close();
    const login = `${encodeURIComponent(MAIL_USER)}:${encodeURIComponent(MAIL_PASSWORD)}`;
    const smtpUrl = `smtp://${login}@127.0.0.1:${port}`;
    const mailSender = {
      // Each test has a server with a certificate of its own.
      send: (one: Parameters<ReturnType<typeof makeMailSender>['send']>[0]) =>
        makeMailSender({ smtpUrl, tls: 'required', caFile: present?.caFile ?? '', from: FROM }).send(one),
    };
    stack = await startOperationsStack({ mailSender, mailScheduleMs: [300, 300, 300] });
  });
  afterAll(() => stack?.stop());

  let present: MailServer | null = null;
  const start = async () => {
    present = await startMailServer({ port });
  };
  afterEach(async () => {
    await present?.close();
    present = null;
  });

  const queue = (recipient = 'asha@store.example') =>
    stack.database.transaction((trx) =>
      queueMail(
        trx,
        { secretBox: testSecretBox, publicUrl: 'https://gateway.example' },
        { kind: 'invitation', userId: null, recipient, ...content },
      ),
    );
  const rowOf = async (id: string) =>
    (
      await query<{
        attempts: number;
        sent: boolean;
        failed: boolean;
        content: string | null;
        error: string | null;
      }>(
        stack.database,
        `select attempts, sent_at is not null as sent, failed_at is not null as failed, content_sealed as content,
                last_error as error from mails where id = :id`,
        { id },
      )
    )[0];
  const resultOf = (id: string) => stack.client.workflow.getHandle(mailWorkflowId(id)).result();

  test('a server that is down is tried again; the content is sealed until then and gone afterwards', async () => {
    const id = await queue();
    await eventually('a failed attempt', async () => ((await rowOf(id))?.attempts ?? 0) > 0);
    const waiting = await rowOf(id);
    expect(waiting).toMatchObject({
      sent: false,
      failed: false,
      error: expect.stringMatching(/ECONNREFUSED/),
    });
    expect(waiting?.content).toMatch(/^v1:test:/);
    await start();
    await eventually('sent', async () => (await rowOf(id))?.sent, { is: true });
    expect(await resultOf(id)).toMatch(/^Sent at attempt \d/);
    expect(present?.received.map(({ to }) => to)).toEqual([['asha@store.example']]);
    expect(await rowOf(id)).toMatchObject({ content: null, error: null, failed: false });
    const tasks = 'select 1 from workflow_tasks where workflow_id = :id';
    expect(await query(stack.database, tasks, { id: mailWorkflowId(id) })).toEqual([]);
    // Neither address nor content is in the history.
    const history = await stack.client.workflow.getHandle(mailWorkflowId(id)).fetchHistory();
    expect(JSON.stringify(history)).not.toContain('store.example');
  });

  test('a refused recipient fails the workflow at once, and the row says why', async () => {
    await start();
    const id = await queue('nobody@store.example');
    await eventually('failed', async () => (await rowOf(id))?.failed, { is: true });
    await expect(resultOf(id)).rejects.toThrow();
    expect(await rowOf(id)).toMatchObject({
      attempts: 1,
      content: null,
      sent: false,
      error: expect.stringMatching(/no such mailbox/),
    });
  });

  test('a server that stays down is given up after the schedule', async () => {
    const id = await queue();
    await eventually('failed', async () => (await rowOf(id))?.failed, { is: true });
    expect(await rowOf(id)).toMatchObject({ attempts: 4, content: null });
  });
});
