import { readFileSync } from 'node:fs';
import { createTransport } from 'nodemailer';
import type { MailContent } from './mails.ts';

export type MailSettings = {
  /** smtp://user:password@host:587 or smtps://host:465; empty: none are sent. */
  smtpUrl: string;
  /** Of a smtp:// URL: whether STARTTLS is demanded, used where it is offered, or never used. */
  tls: 'required' | 'opportunistic' | 'off';
  /** PEM file of the authorities that the mail server is trusted by; empty: those of Node.js. */
  caFile: string;
  from: string;
};

/** What came of one attempt to send an e-mail. `reason` holds no password. */
export type MailOutcome =
  | { kind: 'sent'; reply: string }
  /** The server refuses this e-mail or its recipient for good. */
  | { kind: 'refused'; reason: string }
  | { kind: 'failed'; reason: string };

export type MailSender = {
  send(mail: MailContent & { id: string; recipient: string }): Promise<MailOutcome>;
};

/** Connects to the mail server and signs in; returns why it cannot, null when it can. */
type MailVerifier = { verify(): Promise<string | null> };

const CONNECT_TIMEOUT_MS = 10_000;
const SILENCE_TIMEOUT_MS = 30_000;
const MAX_REASON_CHARS = 300;

/** Gives e-mails to the mail server, each over its own connection. */
export function makeMailSender({ smtpUrl, tls, caFile, from }: MailSettings): MailSender & MailVerifier {
  const { hostname, port, protocol, username, password } = new URL(smtpUrl);
  const secure = protocol === 'smtps:';
  const host = hostname.replace(/^\[|\]$/g, '');
  const transport = createTransport({
    host,
    port: port === '' ? (secure ? 465 : 587) : Number(port),
    secure,
    requireTLS: tls === 'required',
    ignoreTLS: !secure && tls === 'off',
    tls: caFile === '' ? {} : { ca: readFileSync(caFile) },
    ...(username !== '' && {
      auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) },
    }),
    connectionTimeout: CONNECT_TIMEOUT_MS,
    greetingTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SILENCE_TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return {
    send: async ({ id, recipient, subject, text, html }) => {
      try {
        const { response } = await transport.sendMail({
          from,
          // As an object: what it holds is one address, however it is written.
          to: { name: '', address: recipient },
          subject,
          text,
          html,
          messageId: `<${id}@${domainOf(from)}>`,
          headers: { 'Auto-Submitted': 'auto-generated' },
        });
        return { kind: 'sent', reply: shown(response) };
      } catch (error) {
        return outcomeOf(error);
      }
    },
    verify: async () => {
      try {
        await transport.verify();
        return null;
      } catch (error) {
        return shown((error as Error).message);
      }
    },
  };
}

/** The same for every attempt, so that receivers can tell a repetition. */
function domainOf(from: string): string {
  return /@([A-Za-z0-9.-]+)/.exec(from)?.[1] ?? 'heliograph.invalid';
}

/** What the SMTP library says of a failure; `command`: the step at which it came. */
type SmtpFailure = Error & { code?: string; command?: string; responseCode?: number; response?: string };

/** Sign-in, and what enhanced codes say of permission or of the sender: fixed at the server or in the settings. */
const MENDABLE = /^53[05]|^\d{3}[ -]5\.(?:7\.\d+|1\.[78])\b/;

/** What concerns this e-mail alone is final; a refused login or sender, or an unreachable server, can be fixed. */
function outcomeOf(error: unknown): MailOutcome {
  const { code, command, responseCode = 0, response = '', message } = error as SmtpFailure;
  const reason = shown(message);
  const isOfRecipient = code === 'EENVELOPE' && command === 'RCPT TO';
  const isOfContent = code === 'EMESSAGE' && command === 'DATA';
  const isFinal = responseCode >= 500 && (isOfRecipient || isOfContent) && !MENDABLE.test(response);
  return isFinal ? { kind: 'refused', reason } : { kind: 'failed', reason };
}

function shown(text: string): string {
  return text.replace(/\s+/g, ' ').trim().slice(0, MAX_REASON_CHARS);
}
