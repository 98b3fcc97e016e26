import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { signatureOf } from '../../../clients/cli/src/signature.ts';
import { diagnose } from '../../../clients/cli/src/verify.ts';

const KEY = Buffer.alloc(32, 5);
const SECRET = `whsec_${KEY.toString('base64')}`;
const BODY = '{"eventType":"message","data":{"text":{"body":"Größe 7/8 ✓"},"n":12345678901234567890.10}}';
const NOW_MS = 1_790_000_000_000;

function signed(body: Buffer | string, key: Uint8Array = KEY, timestamp = String(NOW_MS / 1_000)) {
  const id = 'evt_019aa2b37c4d7e8f9a0b1c2d3e4f5061';
  const signature = signatureOf(key, id, timestamp, Buffer.from(body));
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature };
}

const problemOf = (body: string | Buffer, headers: Record<string, string>, secret = SECRET, nowMs = NOW_MS) =>
  diagnose(secret, Buffer.from(body), headers, nowMs).problem;

describe('heliograph verify', () => {
  test('accepts what Standard Webhooks signs, also as a second entry and as X-Service-Signature', () => {
    const headers = signed(BODY);
    const ours = new Webhook(SECRET).sign(headers['webhook-id'], new Date(NOW_MS), BODY);
    expect(headers['webhook-signature']).toBe(ours);
    expect(diagnose(SECRET, Buffer.from(BODY), headers, NOW_MS).isValid).toBe(true);
    const rotated = { ...headers, 'webhook-signature': `v1,${'A'.repeat(43)}= v1a,AAAA ${ours}` };
    expect(diagnose(SECRET, Buffer.from(BODY), rotated, NOW_MS).isValid).toBe(true);
    const { 'webhook-signature': list, ...others } = headers;
    const shouted = Object.fromEntries(
      Object.entries({ ...others, 'x-service-signature': list }).map(([k, v]) => [k.toUpperCase(), v]),
    );
    expect(diagnose(SECRET, Buffer.from(BODY), shouted, NOW_MS).isValid).toBe(true);
  });

  test.each([
    ['{ "a": 1 }', JSON.stringify({ a: 1 }), /parsed and written again/],
    [
      BODY,
      BODY.replace(/[\u0080-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`),
      /were escaped/,
    ],
    [BODY, BODY.replaceAll('/', '\\/'), /Slashes/],
    [BODY, `${BODY}\n`, /line break at its end/],
    [BODY, `\ufeff${BODY}`, /byte order mark/],
    [BODY, JSON.stringify(BODY), /JSON as? ?string|JSON string/],
    [BODY, Buffer.from(BODY).toString('latin1'), /Latin-1/],
  ])('names how the body was changed: sent %j, given %j', (sent, given, problem) => {
    // What the gateway sent is `sent`; for the first case it is the compact form that was signed.
    const original = sent === '{ "a": 1 }' ? given : sent;
    const changed = sent === '{ "a": 1 }' ? sent : given;
    expect(problemOf(changed, signed(original))).toMatch(problem);
  });

  test('names a wrong secret, and the text of the secret taken for the key', () => {
    expect(problemOf(BODY, signed(BODY, Buffer.alloc(32, 9)))).toBe('The signature does not match.');
    expect(problemOf(BODY, signed(BODY, Buffer.from(SECRET)))).toMatch(/text of the secret/);
  });

  test.each([
    ['ck_0000', /API key/],
    ['whpk_AAAA', /public key/],
    [`"${SECRET}"`, /quotes/],
    [SECRET.slice('whsec_'.length), /does not begin with whsec_/],
    ['whsec_abc', /not complete base64/],
  ])('names what is wrong with the secret %s', (secret, problem) => {
    expect(problemOf(BODY, signed(BODY), secret)).toMatch(problem);
  });

  test('names a clock that is off, in both directions, only when the signature matches', () => {
    expect(problemOf(BODY, signed(BODY), SECRET, NOW_MS + 301_000)).toBe(
      'The signature matches, but it is 301 s old.',
    );
    expect(problemOf(BODY, signed(BODY), SECRET, NOW_MS - 3_600_000)).toMatch(/3600 s in the future/);
    expect(problemOf(BODY, signed(BODY), SECRET, NOW_MS + 300_000)).toMatch(/valid/);
    expect(problemOf('other', signed(BODY), SECRET, NOW_MS + 3_600_000)).toMatch(/does not match/);
  });

  test.each([
    ['webhook-id', '', /webhook-id is missing/],
    ['webhook-timestamp', '', /webhook-timestamp is missing/],
    ['webhook-signature', '', /webhook-signature is missing/],
    ['webhook-timestamp', '1790000000000', /no time in seconds/],
    ['webhook-timestamp', 'Mon, 21 Sep 2026', /no time in seconds/],
    ['webhook-signature', 'sha256=00', /signature of upstream/],
    ['webhook-signature', 'v1a,AAAA', /only a v1a signature/],
    ['webhook-signature', 'AAAA', /malformed/],
    ['webhook-signature', 'v1,AA AA', /not base64|malformed|does not match/],
  ])('names the header %s that is missing or malformed (%j)', (name, value, problem) => {
    expect(problemOf(BODY, { ...signed(BODY), [name]: value })).toMatch(problem);
  });
});
