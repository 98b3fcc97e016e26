import { randomUUID } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { EXIT, networkProblem } from './failure.ts';
import { postWebhook } from './post-webhook.ts';
import { type Headers, webhookHeaders } from './signature.ts';

export type Finding = { check: string; outcome: 'ok' | 'failed' | 'warning' | 'skipped'; detail: string };

export type DoctorOptions = { url: string; secret: string | null; timeoutMs: number };

/** As the service: a 2xx within 15 seconds. */
export const TIMEOUT_MS = 15_000;
const SLOW_MS = 5_000;

/** Looks at a receiver as the service does. It sends requests that change nothing in a receiver that deduplicates. */
export async function examine(
  options: DoctorOptions,
  onFinding: (finding: Finding) => void,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  const note = (check: string, outcome: Finding['outcome'], detail: string): void => {
    const finding = { check, outcome, detail };
    findings.push(finding);
    onFinding(finding);
  };
  const url = new URL(options.url);
  if (!(await hasAddress(url, note))) return findings;
  checkScheme(url, note);
  const first = await send(options, sample());
  if (first.status === null) {
    note('reachable', 'failed', `${first.problem}. Is the server running, and does a firewall let it pass?`);
    return findings;
  }
  note('reachable', 'ok', `HTTP ${first.status} in ${Math.round(first.durationMs)} ms`);
  if (url.protocol === 'https:') note('TLS', 'ok', 'the certificate is valid for this host');
  judgeFirst(first, options, note);
  await checkSignatures(options, first, note);
  await checkDuplicates(options, first, note);
  return findings;
}

/** The exit code of findings. */
export function exitCodeOf(findings: readonly Finding[]) {
  return findings.some(({ outcome }) => outcome === 'failed') ? EXIT.failed : EXIT.ok;
}

type Note = (check: string, outcome: Finding['outcome'], detail: string) => void;

async function hasAddress(url: URL, note: Note): Promise<boolean> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0) return true;
  try {
    const addresses = await lookup(host, { all: true });
    note('name', 'ok', addresses.map(({ address }) => address).join(', '));
    return true;
  } catch {
    note('name', 'failed', `${host} has no address. Is it spelled correctly?`);
    return false;
  }
}

const LOCAL = /^(localhost|127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|169\.254\.|\[?::1)/;

function checkScheme(url: URL, note: Note): void {
  if (LOCAL.test(url.hostname)) {
    note(
      'public',
      'warning',
      'this address is private: a service elsewhere cannot reach it; "heliograph listen" forwards events to it',
    );
  } else if (url.protocol === 'http:') {
    note('TLS', 'failed', 'endpoints must be https:// in production');
  }
}

type Sample = { id: string; body: Buffer };

/** A test event. */
function sample(): Sample {
  const body = {
    eventType: 'test',
    userId: 1,
    wabaId: '0',
    phoneNumberId: 'TEST_PHONE_NUMBER_ID',
    eventId: `test_${Date.now()}`,
    occurredAt: new Date().toISOString(),
    data: { message: 'This is a test event of "heliograph doctor".', businessName: 'doctor' },
  };
  return { id: `evt_${randomUUID().replaceAll('-', '')}`, body: Buffer.from(JSON.stringify(body)) };
}

type Sent = { status: number | null; problem: string; durationMs: number; location: string | null };

const ANY_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

async function send(
  { url, secret, timeoutMs }: DoctorOptions,
  { id, body }: Sample,
  change: {
    headers?: Headers;
    body?: Buffer;
    secret?: string;
    timestampSeconds?: number;
    attempt?: number;
  } = {},
): Promise<Sent> {
  const event = { ...JSON.parse(body.toString()), id, sequence: 1, createdAt: '' };
  const { timestampSeconds = Math.floor(Date.now() / 1_000), attempt = 1 } = change;
  const made = {
    event,
    deliveryId: `dlv_${id.slice(4)}`,
    attempt,
    userAgent: 'Heliograph',
    timestampSeconds,
  };
  const headers = { ...webhookHeaders(change.secret ?? secret ?? ANY_SECRET, body, made), ...change.headers };
  const startedAt = performance.now();
  try {
    const { signal } = new AbortController();
    const response = await postWebhook(url, headers, change.body ?? body, { signal, timeoutMs });
    const durationMs = performance.now() - startedAt;
    return { status: response.status, problem: '', durationMs, location: response.location };
  } catch (error) {
    const durationMs = performance.now() - startedAt;
    return { status: null, problem: networkProblem(error), durationMs, location: null };
  }
}

const isSuccess = ({ status }: Sent) => status !== null && status >= 200 && status < 300;
const shownStatus = ({ status, problem }: Sent) => (status === null ? problem : `HTTP ${status}`);

function judgeFirst(first: Sent, { secret }: DoctorOptions, note: Note): void {
  if (first.location !== null) {
    note(
      'response',
      'failed',
      `it redirects to ${first.location}; the service follows no redirects: use that URL`,
    );
  } else if (isSuccess(first)) {
    const slow = first.durationMs > SLOW_MS;
    if (slow)
      note(
        'time',
        'warning',
        `${Math.round(first.durationMs)} ms: respond first and work later; after 15 s an attempt has failed`,
      );
    note('response', 'ok', shownStatus(first));
  } else if (secret === null) {
    note('response', 'skipped', `${shownStatus(first)}: with --secret doctor can sign its requests`);
  } else {
    const hint =
      first.status === 401 || first.status === 403
        ? ': does the server have this secret, and the raw body?'
        : '';
    note('response', 'failed', `${shownStatus(first)} for a valid request${hint}`);
  }
}

async function checkSignatures(options: DoctorOptions, first: Sent, note: Note): Promise<void> {
  if (options.secret !== null && !isSuccess(first))
    return note('signature', 'skipped', 'a valid request is not accepted');
  const wanted = sample();
  const key = `whsec_${Buffer.from(randomUUID().replaceAll('-', '')).toString('base64')}`;
  const changed = Buffer.from(wanted.body.toString().replace('"wabaId":"0"', '"wabaId":"1"'));
  const old = Math.floor(Date.now() / 1_000) - 3_600;
  const wrong: [string, Promise<Sent>][] = [
    ['a signature by another secret', send(options, wanted, { secret: key })],
    ['a body that was changed', send(options, wanted, { body: changed })],
    [
      'no signature',
      send(options, wanted, { headers: { 'webhook-signature': '', 'X-Service-Signature': '' } }),
    ],
    ['a signature that is an hour old', send(options, wanted, { timestampSeconds: old })],
  ];
  for (const [name, sending] of wrong) {
    const sent = await sending;
    // A receiver that never accepts anything proves nothing, and an old signature needs the right secret.
    if (options.secret === null && name.endsWith('hour old')) continue;
    if (isSuccess(sent))
      note('signature', 'failed', `${name} is accepted (${shownStatus(sent)}): everybody can send events`);
    else if (sent.status !== null && sent.status >= 500)
      note('signature', 'warning', `${name} causes ${shownStatus(sent)}: respond with 401`);
    else note('signature', 'ok', `${name} is refused (${shownStatus(sent)})`);
  }
}

async function checkDuplicates(options: DoctorOptions, first: Sent, note: Note): Promise<void> {
  if (options.secret === null || !isSuccess(first)) {
    return note(
      'duplicates',
      'skipped',
      options.secret === null ? 'needs --secret' : 'a valid request is not accepted',
    );
  }
  const event = sample();
  const sent = [await send(options, event), await send(options, event, { attempt: 2 })];
  const together = await Promise.all([
    send(options, event, { attempt: 3 }),
    send(options, event, { attempt: 4 }),
  ]);
  const refused = [...sent, ...together].find((one) => !isSuccess(one));
  if (refused === undefined) {
    note(
      'duplicates',
      'ok',
      'a repeated webhook-id gets 2xx; whether it is processed once, only your server knows',
    );
  } else {
    note(
      'duplicates',
      'failed',
      `a repeated webhook-id gets ${shownStatus(refused)}: respond with 2xx, or it is retried for days`,
    );
  }
}
