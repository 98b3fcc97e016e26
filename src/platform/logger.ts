import { createHash } from 'node:crypto';
import { type DestinationStream, type Logger as PinoLogger, pino } from 'pino';
import type { Config } from './config/config.ts';

/** What worker parts log to. Error = someone must act; a healthy system logs none. */
export type Logger = Pick<PinoLogger, 'debug' | 'info' | 'warn' | 'error'>;

/**
 * JSON lines on stdout; errors without the data they quote, what looks like a secret cut out wherever it stands, and
 * upstream's message ids masked.
 */
export function openLogger(
  config: Pick<Config, 'logLevel'>,
  name: string,
  destination?: DestinationStream,
): PinoLogger {
  const serialize = (error: unknown) => loggedError(error);
  const options = {
    name,
    level: config.logLevel,
    serializers: { err: serialize, error: serialize },
    hooks: { streamWrite: maskMessageIds },
    redact: { paths: ['*.authorization', '*.secret', '*.accessToken', '*.apiKey'], censor: '[redacted]' },
  };
  return destination === undefined ? pino(options) : pino(options, destination);
}

/** As it stands in texts and in URLs. */
const MESSAGE_ID = /wamid(?:\.|%2E)[A-Za-z0-9+/=%-]+/gi;
const MASK_HEX_DIGITS = 12;

/**
 * Upstream's message ids hold the customer's phone number in base64. In their place stands a digest, the same for the
 * same id, so that lines of one message are found by each other. Their random part keeps it from being undone.
 */
export function maskMessageIds(text: string): string {
  if (!text.includes('wamid')) return text;
  return text.replace(MESSAGE_ID, maskedMessageId);
}

function maskedMessageId(id: string): string {
  const plain = id
    .replaceAll(/%2E/gi, '.')
    .replaceAll(/%2B/gi, '+')
    .replaceAll(/%2F/gi, '/')
    .replaceAll(/%3D/gi, '=');
  return `wamid#${createHash('sha256').update(plain).digest('hex').slice(0, MASK_HEX_DIGITS)}`;
}

/** What may be said of an error in a log: where it is and of what kind, and nothing of the data or secrets in it. */
type LoggedError = {
  type: string;
  message: string;
  stack?: string;
  cause?: LoggedError;
  [fact: string]: unknown;
};

/** Of a database error those that name parts of the schema, of others those that name no value of ours. */
const FACTS = [
  ...['code', 'severity', 'schema', 'table', 'column', 'dataType', 'constraint', 'routine'],
  ...['errno', 'syscall', 'status', 'statusCode', 'errorClass', 'reason'],
];

const MAX_MESSAGE_CHARS = 1_000;
const MAX_CAUSES = 5;

/** An error as logs show it: `detail`, `where`, `hint` and whatever else may quote a row is left out. */
function loggedError(error: unknown, depth = 0): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error, message: withoutUrlSecrets(String(error)) };
  const facts = Object.entries(error).filter(([name, value]) => FACTS.includes(name) && isPlain(value));
  const stack = framesOf(error);
  return {
    type: error.name,
    message: safeErrorMessage(error),
    ...Object.fromEntries(facts),
    ...(stack !== '' && { stack }),
    ...(error.cause !== undefined && depth < MAX_CAUSES && { cause: loggedError(error.cause, depth + 1) }),
  };
}

/** The message of an error without the values that it quotes and without what is secret in URLs. */
function safeErrorMessage(error: Error): string {
  const message = quotesData(error) ? withoutValues(error) : error.message;
  return maskMessageIds(withoutUrlSecrets(message)).slice(0, MAX_MESSAGE_CHARS);
}

/** Takes out of an error, and of its causes, what a log must not show, for libraries that write errors down. */
export function redactError(error: unknown, depth = 0): void {
  if (!(error instanceof Error) || depth > MAX_CAUSES) return;
  const [message, frames] = [safeErrorMessage(error), framesOf(error)];
  if (message !== error.message) {
    error.message = message;
    error.stack = `${error.name}: ${message}\n${frames}`;
  }
  if (isDatabaseError(error)) for (const name of QUOTING) delete error[name];
  redactError(error.cause, depth + 1);
}

const QUOTING = ['detail', 'where', 'hint', 'internalQuery'] as const;
type DatabaseError = Error & { code: unknown } & { [name in (typeof QUOTING)[number]]?: unknown };

function isDatabaseError(error: Error): error is DatabaseError {
  return 'severity' in error && 'code' in error && /^[0-9A-Z]{5}$/.test(String(error.code));
}

/** JSON.parse quotes what it cannot read; the database does so unless the statement itself is wrong (class 42). */
function quotesData(error: Error): boolean {
  return error instanceof SyntaxError || (isDatabaseError(error) && !String(error.code).startsWith('42'));
}

/** Ends before the first value, which may hold quotation marks itself. Names of the schema stay. */
function withoutValues(error: Error): string {
  const names = new Set(
    Object.entries(error).flatMap(([name, value]) => (FACTS.includes(name) ? [value] : [])),
  );
  const quoted = [...error.message.matchAll(/"([^"]*)"?|'/g)];
  const value = quoted.find(([, name]) => name === undefined || !names.has(name));
  return value === undefined ? error.message : `${error.message.slice(0, value.index)}"…"`;
}

/** Of a URL only the origin: user, path and query may be secrets. */
function withoutUrlSecrets(text: string): string {
  return text.replace(
    /\b([a-z][a-z0-9+.-]{0,31}:\/\/)(?:[^\s/@"'<>]*@)?([^\s/?#"'<>]+)[^\s"'<>]*/gi,
    '$1$2/…',
  );
}

/** Without the message, which comes first. */
function framesOf({ stack = '' }: Error): string {
  return stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .join('\n');
}

function isPlain(value: unknown): boolean {
  return ['string', 'number', 'boolean'].includes(typeof value);
}
