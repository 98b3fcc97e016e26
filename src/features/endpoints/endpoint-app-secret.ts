import { randomBytes } from 'node:crypto';
import { ENDPOINT_APP_SECRET } from '../../engine/endpoint/endpoint-secrets.ts';
import type { EventFormat } from '../../engine/endpoint/event-format.ts';
import type { SecretBox } from '../../platform/crypto/secret-box.ts';
import { invalidValue, RequestError } from '../../platform/request-input.ts';
import { makeHttpSender } from '../../platform/sender/http-sender.ts';
import { makeProxyRoute } from '../../platform/sender/proxy-route.ts';
import type { EndpointOptions, OptionRules } from './endpoint-options.ts';
import { takeUrlLookup } from './url-check.ts';
import { webhookTargets } from './webhook-targets.ts';

/** An app secret is all that keeps forged messages out of the software behind; a verify token is used once, and kept nowhere. */
const MIN_CHARS = { appSecret: 16, verifyToken: 1 };
const MAX_CHARS = 512;
const TIMEOUT_MS = 5_000;

/** Sealed; `made` is shown once, null when none was made. */
export type AppSecretChange = { appSecretSealed: string | null; made: string | null };

/** Only the format `meta` knows them. Throws RequestError `invalid_value`. */
export function refuseUpstreamSecrets(
  format: EventFormat,
  { appSecret, verifyToken }: Pick<EndpointOptions, 'appSecret' | 'verifyToken'>,
): void {
  for (const [name, text] of [['appSecret', appSecret] as const, ['verifyToken', verifyToken] as const]) {
    if (text === undefined) continue;
    if (format !== 'meta') throw invalidValue(`"${name}" is for endpoints with the format meta.`, name);
    if (text.length < MIN_CHARS[name] || text.length > MAX_CHARS) {
      throw invalidValue(`"${name}" must have ${MIN_CHARS[name]} to ${MAX_CHARS} characters.`, name);
    }
  }
}

export function changeAppSecret(
  secretBox: SecretBox,
  { id, format, appSecretSealed }: { id: string; format: EventFormat; appSecretSealed: string | null },
  given: string | undefined,
): AppSecretChange {
  const seal = (secret: string) => secretBox.seal(secret, ENDPOINT_APP_SECRET.place(id));
  if (given !== undefined) return { appSecretSealed: seal(given), made: null };
  if (format !== 'meta' || appSecretSealed !== null) return { appSecretSealed, made: null };
  // 32 hex digits, as the upstream platform's.
  const made = randomBytes(16).toString('hex');
  return { appSecretSealed: seal(made), made };
}

/** The server must return a challenge, as the upstream platform asks it to. Throws RequestError: `url_not_verified`, `rate_limit_exceeded`. */
export async function verifyCallback(
  { database, urlRules }: OptionRules,
  wabaId: string,
  { url, verifyToken }: { url: string; verifyToken: string },
): Promise<void> {
  if (urlRules.lookupsPerMinute !== undefined) {
    await takeUrlLookup(database, wabaId, urlRules.lookupsPerMinute);
  }
  const challenge = String(randomBytes(4).readUInt32BE());
  const address = new URL(url);
  address.searchParams.set('hub.mode', 'subscribe');
  address.searchParams.set('hub.challenge', challenge);
  address.searchParams.set('hub.verify_token', verifyToken);
  const { allowHttp, guard, resolve, proxy } = urlRules;
  const route = proxy ? makeProxyRoute(proxy) : undefined;
  const limits = { connectTimeoutMs: TIMEOUT_MS, totalTimeoutMs: TIMEOUT_MS };
  const sender = makeHttpSender({ allowHttp, guard, resolve, route, ...limits });
  try {
    const targets = await webhookTargets(database, wabaId);
    const result = await sender.send({ url: address.href, method: 'GET', headers: {}, body: null, targets });
    if (result.outcome === 'error') throw refused(result.message);
    if (result.statusCode !== 200) throw refused(`The server responded with status ${result.statusCode}.`);
    if (result.body.toString('utf8').trim() !== challenge) {
      throw refused('The response is not the value of hub.challenge.');
    }
  } finally {
    await sender.close();
  }
}

function refused(reason: string): RequestError {
  return new RequestError('url_not_verified', `The URL could not be verified. ${reason}`, 'verifyToken');
}
