import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generate } from 'selfsigned';
import { SMTPServer } from 'smtp-server';

type ReceivedMail = {
  from: string;
  to: string[];
  raw: string;
  isEncrypted: boolean;
  user: string | null;
};

export type MailServer = {
  /** Without a user. */
  port: number;
  /** smtp:// with the user and password that the server wants. */
  url: string;
  /** PEM file of the certificate. */
  caFile: string;
  received: ReceivedMail[];
  close(): Promise<void>;
};

export const MAIL_USER = 'heliograph@mail.example';
export const MAIL_PASSWORD = 'pass:word/1';

/**
 * A real SMTP server over TCP. It takes mail of one user with a password, over TLS unless `isPlain`, and refuses
 * recipients whose address begins with "nobody", for good, or with "later", for now. It refuses a sender that begins with
 * "foreign", or with "hidden" as servers do that wait for the recipient, and the content for a recipient "spam".
 */
export async function startMailServer(
  options: { port?: number; isPlain?: boolean } = {},
): Promise<MailServer> {
  const { port = 0, isPlain = false } = options;
  const folder = mkdtempSync(join(tmpdir(), 'mail-'));
  const caFile = join(folder, 'ca.pem');
  const { private: key, cert } = await generate([{ name: 'commonName', value: '127.0.0.1' }], {
    extensions: [{ name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] }],
  });
  writeFileSync(caFile, cert);
  const received: ReceivedMail[] = [];
  const server = new SMTPServer({
    key,
    cert,
    allowInsecureAuth: isPlain,
    disabledCommands: isPlain ? ['STARTTLS'] : [],
    onAuth: ({ username, password }, _session, done) => {
      if (username === MAIL_USER && password === MAIL_PASSWORD) done(null, { user: username });
      else done(new Error('wrong user or password'));
    },
    onMailFrom: ({ address }, _session, done) => {
      if (address.startsWith('foreign')) done(refusal('sender not owned by user', 553));
      else done();
    },
    onRcptTo: ({ address }, { envelope }, done) => {
      const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address;
      if (from.startsWith('hidden')) done(refusal('5.7.1 sender address rejected', 553));
      else if (address.startsWith('nobody')) done(refusal('550 there is no such mailbox', 550));
      else if (address.startsWith('later')) done(refusal('451 greylisted', 451));
      else done();
    },
    onData: (stream, { envelope, secure, user }, done) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        if (envelope.rcptTo.some(({ address }) => address.startsWith('spam')))
          return done(refusal('content rejected', 554));
        received.push({
          from: envelope.mailFrom === false ? '' : envelope.mailFrom.address,
          to: envelope.rcptTo.map(({ address }) => address),
          raw: Buffer.concat(chunks).toString(),
          isEncrypted: secure,
          user: typeof user === 'string' ? user : null,
        });
        done();
      });
    },
  });
  // A client that does not trust the certificate ends the connection.
  server.on('error', () => {});
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', () => resolve()));
  const { port: opened } = server.server.address() as { port: number };
  const login = `${encodeURIComponent(MAIL_USER)}:${encodeURIComponent(MAIL_PASSWORD)}`;
  return {
    port: opened,
    url: `smtp://${login}@127.0.0.1:${opened}`,
    caFile,
    received,
    close: async () => {
      await new Promise<void>((resolve) => server.close(() => resolve()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function refusal(message: string, responseCode: number): Error {
  return Object.assign(new Error(message), { responseCode });
}

/** The text of a part of an e-mail: transfer encodings are undone. */
export function partOf(raw: string, type: 'text/plain' | 'text/html'): string {
  const part = raw.split(/\r\n--/).find((piece) => piece.includes(`Content-Type: ${type}`)) ?? '';
  const [head = '', ...body] = part.split('\r\n\r\n');
  const text = body.join('\n\n');
  if (/base64/i.test(head)) return Buffer.from(text, 'base64').toString();
  if (!/quoted-printable/i.test(head)) return text.replaceAll('\r\n', '\n');
  const bytes = text
    .replaceAll('=\r\n', '')
    .replaceAll('\r\n', '\n')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString();
}
