import { type Headers, hasSignature, secretBytes, signatureOf } from './signature.ts';

/** The outcome for one delivery: what is wrong, and what to do about it. */
export type Verdict = { isValid: boolean; problem: string; advice: string };

const TOLERANCE_SECONDS = 300;

const valid = (advice = ''): Verdict => ({ isValid: true, problem: 'The signature is valid.', advice });
const wrong = (problem: string, advice: string): Verdict => ({ isValid: false, problem, advice });

/** Checks a signature as a receiver should, and looks for the mistake when it does not match. */
export function diagnose(secret: string, body: Buffer, given: Headers, nowMs = Date.now()): Verdict {
  const headers = lowerCased(given);
  const malformed = secretProblem(secret) ?? headerProblem(headers);
  if (malformed !== null) return malformed;
  const key = secretBytes(secret) ?? Buffer.alloc(0);
  const [id, timestamp, list] = [
    headers['webhook-id'] ?? '',
    headers['webhook-timestamp'] ?? '',
    listOf(headers),
  ];
  const signs = (candidate: Uint8Array, withKey: Uint8Array = key, withId = id, withTime = timestamp) =>
    hasSignature(list, signatureOf(withKey, withId, withTime, candidate));
  if (signs(body)) return clockProblem(timestamp, nowMs) ?? valid();
  return (
    otherBody(body, signs) ??
    otherKey(secret, body, signs) ??
    otherContents(body, headers, signs) ??
    unknown(list)
  );
}

function lowerCased(headers: Headers): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** `X-Service-Signature` has the same value. */
function listOf(headers: Headers): string {
  return (headers['webhook-signature'] ?? headers['x-service-signature'] ?? '').trim();
}

function secretProblem(secret: string): Verdict | null {
  if (secretBytes(secret) !== null) return null;
  if (secret.startsWith('ck_')) {
    return wrong('The secret is an API key.', 'Take the secret of the endpoint, which begins with whsec_.');
  }
  if (secret.startsWith('whpk_')) {
    return wrong(
      'The secret is a public key.',
      'It verifies v1a signatures. For v1 take the secret, which begins with whsec_.',
    );
  }
  if (secret !== secret.trim() || /["'\s]/.test(secret)) {
    return wrong(
      'The secret has spaces or quotes around it.',
      'Store it without: often they come from a file with settings.',
    );
  }
  if (!secret.startsWith('whsec_')) {
    return wrong('The secret does not begin with whsec_.', 'Take the secret exactly as it was shown.');
  }
  return wrong(
    'The secret is not complete base64.',
    'Copy it again: it has a part missing or a character too many.',
  );
}

function headerProblem(headers: Headers): Verdict | null {
  for (const name of ['webhook-id', 'webhook-timestamp']) {
    if ((headers[name] ?? '') === '') {
      return wrong(
        `The header ${name} is missing.`,
        'It is part of what is signed. A proxy or the framework may have removed it.',
      );
    }
  }
  const list = listOf(headers);
  if (list === '') {
    return wrong(
      'The header webhook-signature is missing.',
      'The request is not from the service, or a proxy removed it.',
    );
  }
  const timestamp = headers['webhook-timestamp'] ?? '';
  if (!/^\d{9,11}$/.test(timestamp)) {
    const hint = /^\d{13}$/.test(timestamp) ? ' These are milliseconds.' : '';
    return wrong(
      'The header webhook-timestamp is no time in seconds since 1970.',
      `Pass the header on as it came.${hint}`,
    );
  }
  if (list.startsWith('sha256=')) {
    return wrong(
      'The header has the signature of upstream (X-Hub-Signature-256).',
      'Take webhook-signature, or verify with the app secret of the endpoint.',
    );
  }
  const entries = list.split(/[ ,]+v1a?,|^v1a?,/).filter((entry) => entry !== '');
  if (!/(^| )v1,/.test(list)) {
    const onlyPublic = list.startsWith('v1a,');
    if (onlyPublic)
      return wrong(
        'The list has only a v1a signature.',
        'Verify it with the public key of the endpoint (whpk_…).',
      );
    return wrong(
      'The header webhook-signature is malformed.',
      'It is a list of entries "v1,<base64>", separated by spaces. Pass it on as it came.',
    );
  }
  if (entries.some((entry) => !/^[A-Za-z0-9+/]+={0,2}$/.test(entry))) {
    return wrong(
      'An entry of webhook-signature is not base64.',
      'Pass the header on as it came: "+" may have become a space.',
    );
  }
  return null;
}

function clockProblem(timestamp: string, nowMs: number): Verdict | null {
  const offSeconds = Math.round(nowMs / 1_000 - Number(timestamp));
  if (Math.abs(offSeconds) <= TOLERANCE_SECONDS) return null;
  const apart = `${Math.abs(offSeconds)} s`;
  return offSeconds > 0
    ? wrong(
        `The signature matches, but it is ${apart} old.`,
        'Receivers refuse more than 300 s. If the request just came, your clock is ahead: synchronize it.',
      )
    : wrong(
        `The signature matches, but its time is ${apart} in the future.`,
        'Your clock is behind: synchronize it.',
      );
}

type Signs = (body: Uint8Array, key?: Uint8Array, id?: string, timestamp?: string) => boolean;

function otherBody(body: Buffer, signs: Signs): Verdict | null {
  for (const [bytes, problem, advice] of changedBodies(body)) {
    if (bytes !== null && !bytes.equals(body) && signs(bytes)) return wrong(problem, advice);
  }
  return null;
}

/** Ways in which the bytes of a body are changed before they are verified, with the bytes that were signed. */
function changedBodies(body: Buffer): [Buffer | null, string, string][] {
  const text = body.toString('utf8');
  return [
    [
      Buffer.from(text.replace(/\r?\n$/, '')),
      'The body has a line break at its end that was not sent.',
      'An editor or echo adds it: use --body @file with the bytes as they came, or printf %s.',
    ],
    [
      Buffer.from(`${text}\n`),
      'A line break at the end of the body is missing.',
      'Something trimmed the body.',
    ],
    [
      Buffer.from(text.replace(/^\ufeff/, '')),
      'The body begins with a byte order mark.',
      'Read the body as bytes.',
    ],
    [
      Buffer.from(text.replaceAll('\r\n', '\n')),
      'Line breaks of the body were changed.',
      'Read the body as bytes, not as text.',
    ],
    [reencoded(text, (value) => JSON.stringify(value)), ...REENCODED],
    [reencoded(text, (value) => escapeAll(JSON.stringify(value))), ...REENCODED],
    ...changedTexts(body, text),
  ];
}

function changedTexts(body: Buffer, text: string): [Buffer | null, string, string][] {
  return [
    [
      Buffer.from(unescapeText(text)),
      'Characters of the body were escaped (\\u…).',
      'Verify the raw bytes, before anything parses and writes them.',
    ],
    [
      Buffer.from(escapeAll(text)),
      'Escapes of the body (\\u…) were replaced by characters.',
      'Verify the raw bytes, before anything parses and writes them.',
    ],
    [
      Buffer.from(text.replaceAll('\\/', '/')),
      'Slashes of the body were escaped.',
      'json_encode of PHP does that: verify the raw bytes.',
    ],
    [
      Buffer.from(body.toString('latin1'), 'utf8'),
      'The body was read in another encoding than UTF-8.',
      'Read the body as bytes.',
    ],
    [undoubled(text), 'The body was read as Latin-1 and written as UTF-8.', 'Read the body as bytes.'],
    [
      quoted(text),
      'The body is a JSON string that contains the body.',
      'Parse it once less: it was written as JSON twice.',
    ],
  ];
}

const REENCODED = [
  'The body was parsed and written again: its spaces or escapes differ.',
  'Verify the raw bytes, before a framework parses them (express.raw, request.get_data(), php://input).',
] as const;

function reencoded(text: string, write: (value: unknown) => string): Buffer | null {
  try {
    return Buffer.from(write(JSON.parse(text)));
  } catch {
    return null;
  }
}

function escapeAll(json: string): string {
  return json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function unescapeText(json: string): string {
  return json.replace(/\\u([0-9a-f]{4})/gi, (all, hex: string) => {
    const unit = Number.parseInt(hex, 16);
    return unit < 0x80 ? all : String.fromCharCode(unit);
  });
}

function undoubled(text: string): Buffer | null {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of Latin-1.
  return /^[\u0000-\u00ff]*$/.test(text) ? Buffer.from(text, 'latin1') : null;
}

function quoted(text: string): Buffer | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'string' ? Buffer.from(value) : null;
  } catch {
    return null;
  }
}

/** Ways in which the key is made wrongly from the right secret: then the secret is right, and the receiver's code is not. */
function otherKey(secret: string, body: Buffer, signs: Signs): Verdict | null {
  const text = secret.slice('whsec_'.length);
  const keys = [Buffer.from(secret), Buffer.from(text), Buffer.from(text, 'base64url')];
  if (!keys.some((key) => signs(body, key))) return null;
  return wrong(
    'The signature was made with the text of the secret.',
    'The key is what stands behind whsec_, decoded from base64.',
  );
}

/** Ways in which what is signed is put together wrongly. */
function otherContents(body: Buffer, headers: Headers, signs: Signs): Verdict | null {
  const [id, timestamp] = [headers['webhook-id'] ?? '', headers['webhook-timestamp'] ?? ''];
  if (signs(body, undefined, id.trim(), timestamp.trim())) {
    return wrong('Headers have spaces around their values.', 'Remove them before you verify.');
  }
  const delivery = headers['x-service-delivery-id'] ?? '';
  if (delivery !== '' && signs(body, undefined, delivery)) {
    return wrong(
      'X-Service-Delivery-Id was taken for webhook-id.',
      'What is signed is webhook-id + "." + webhook-timestamp + "." + body.',
    );
  }
  return null;
}

function unknown(list: string): Verdict {
  const several = list.includes(' ') ? ' None of the entries matches.' : '';
  return wrong(
    `The signature does not match.${several}`,
    'The usual reason is the secret of another endpoint, or one from before a rotation: each endpoint has its own. Otherwise the body, webhook-id or webhook-timestamp is not the one that was sent.',
  );
}
