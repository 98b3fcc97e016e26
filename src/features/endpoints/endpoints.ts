import { ENDPOINT_SECRET, ENDPOINT_SIGNING_KEY } from '../../engine/endpoint/endpoint-secrets.ts';
import type { EventFormat } from '../../engine/endpoint/event-format.ts';
import { recoveringSince } from '../../engine/endpoint/recovery.ts';
import {
  type Endpoint,
  findEndpoint,
  findEndpointForOperator,
  insertEndpoint,
  listEndpoints,
  lockEndpoint,
  nextEndpointId,
  replaceEndpointSecret,
  type StoredEndpointOptions,
  saveEndpointOptions,
} from '../../engine/endpoint/store.ts';
import { newSigningKey, newWebhookSecret, publicKeyOf } from '../../engine/endpoint/webhook-signature.ts';
import { lockLanes } from '../../engine/queue/order-scope.ts';
import { hasReplayHeads } from '../../engine/queue/replay-queue.ts';
import { countWaiting, shownCount, type WaitingDeliveries } from '../../engine/queue/waiting.ts';
import { type Actor, type Audited, recordChange } from '../../platform/audit/audit.ts';
import { type CertificateView, certificateView } from '../../platform/crypto/client-certificate.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import { type SecretBox, SecretBoxError } from '../../platform/crypto/secret-box.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { checkRowId, RequestError } from '../../platform/request-input.ts';
import { knownWaba } from '../accounts/accounts.ts';
import { changeAppSecret, refuseUpstreamSecrets, verifyCallback } from './endpoint-app-secret.ts';
import {
  changeSealedHeaders,
  customHeaderNames,
  type EndpointMove,
  headersAfterChange,
  moveDetail,
} from './endpoint-headers.ts';
import {
  checkBuffering,
  checkEndpointOptions,
  type EndpointOptions,
  type OptionRules,
} from './endpoint-options.ts';

/** Every event is fanned out to all of them. */
export const MAX_ENDPOINTS = 100;

/** `secret` is what the tenant verifies signatures with; it is shown this once. */
export type CreatedEndpoint = EndpointView & MadeAppSecret & { secret: string };

/** Shown this once; null: none was made. */
type MadeAppSecret = { appSecret: string | null };

type SameUrl = { sameUrlEndpointIds: string[] };

export function sameUrlNotice({ sameUrlEndpointIds: ids }: SameUrl): string | null {
  if (ids.length === 0) return null;
  const others = ids.length === 1 ? `Endpoint ${ids[0]} has` : `Endpoints ${ids.join(', ')} have`;
  return `${others} the same URL: events arrive there once for each endpoint, each signed with the secret of its endpoint.`;
}

export async function sameUrlOf(
  database: Database,
  { id, wabaId, url }: Pick<Endpoint, 'id' | 'wabaId' | 'url'>,
): Promise<SameUrl> {
  const all = await listEndpoints(database, wabaId);
  const others = all.filter((other) => other.id !== id && other.url === url);
  return { sameUrlEndpointIds: others.map((other) => other.id) };
}

export type EndpointStatus = EndpointView & {
  waiting: WaitingDeliveries;
  /** Since when it takes deliveries again, while some go out that waited for that. */
  recoveringSince: Date | null;
};

/**
 * Throws RequestError: `invalid_value`, `unknown_waba`, `too_many_endpoints`, `unknown_phone_number`, `url_not_verified`, or the code of
 * the refused URL.
 */
export async function addEndpoint(
  tools: SealedDatabase & OptionRules & Audited,
  wabaId: string,
  { ref = null, ...options }: EndpointOptions & { url: string; ref?: string | null },
): Promise<CreatedEndpoint & SameUrl> {
  await knownWaba(tools.database, wabaId);
  if ((await listEndpoints(tools.database, wabaId)).length >= MAX_ENDPOINTS) {
    const message = `WABA ${wabaId} has ${MAX_ENDPOINTS} webhook endpoints, and may have no more.`;
    throw new RequestError('too_many_endpoints', message);
  }
  const { url = options.url, ...checked } = await checkEndpointOptions(tools, wabaId, options);
  checkBuffering(checked);
  await verifyIfAsked(tools, wabaId, { ...checked, url }, options);
  const created = await storeEndpoint(tools, wabaId, { ...checked, url, ref }, options);
  return { ...created, ...(await sameUrlOf(tools.database, created)) };
}

type Verified = { url: string; format?: EventFormat };

async function verifyIfAsked(
  tools: OptionRules,
  wabaId: string,
  { url, format = 'heliograph' }: Verified,
  options: EndpointOptions,
): Promise<void> {
  refuseUpstreamSecrets(format, options);
  const { verifyToken } = options;
  if (verifyToken !== undefined) await verifyCallback(tools, wabaId, { url, verifyToken });
}

/** The settings have been checked. Throws RequestError `invalid_value` for headers and secrets. */
export async function storeEndpoint(
  { database, secretBox, actor }: SealedDatabase & Audited,
  wabaId: string,
  settings: Partial<StoredEndpointOptions> & { url: string; ref?: string | null },
  options: Pick<EndpointOptions, 'customHeaders' | 'appSecret'> = {},
): Promise<CreatedEndpoint> {
  const id = await nextEndpointId(database);
  const secret = newWebhookSecret();
  const secretSealed = secretBox.seal(secret, ENDPOINT_SECRET.place(id));
  const customHeadersSealed = changeSealedHeaders(
    secretBox,
    { id, customHeadersSealed: null },
    options.customHeaders ?? {},
  );
  const signingKeySealed = signsWithKey(settings) ? newSealedKey(secretBox, id) : null;
  const urlSetByKey = actor.apiKey?.id ?? null;
  const { format = 'heliograph' } = settings;
  const app = changeAppSecret(secretBox, { id, format, appSecretSealed: null }, options.appSecret);
  const { appSecretSealed } = app;
  const sealed = { secretSealed, signingKeySealed, customHeadersSealed, appSecretSealed };
  const endpoint = { ...settings, ...sealed, id, urlSetByKey };
  await database.transaction(async (trx) => {
    await insertEndpoint(trx, wabaId, endpoint);
    const detail = { host: new URL(settings.url).host };
    await recordChange(trx, actor, { wabaId, action: 'endpoint.created', target: endpointName(id), detail });
  });
  const stored = await knownEndpoint(database, wabaId, id);
  return { ...endpointView(secretBox, stored), secret, appSecret: app.made };
}

/**
 * A URL of another origin forgets custom headers that are not given again. Throws RequestError as `addEndpoint`, `unknown_endpoint`, and
 * `deliveries_pending` where the order scope would change.
 */
export async function updateEndpoint(
  tools: SealedDatabase & OptionRules & Audited,
  wabaId: string,
  endpointId: string,
  options: EndpointOptions,
): Promise<EndpointView & EndpointMove & SameUrl & MadeAppSecret> {
  const { database, secretBox, actor } = tools;
  const { url: presentUrl, format: presentFormat } = await knownEndpoint(database, wabaId, endpointId);
  // Names are resolved before the row is locked: that can take seconds.
  const checked = await checkEndpointOptions(tools, wabaId, options, presentUrl);
  const verified = { url: presentUrl, format: presentFormat, ...checked };
  await verifyIfAsked(tools, wabaId, verified, options);
  const { view, move, appSecret } = await database.transaction(async (trx) => {
    if (!(await lockEndpoint(trx, wabaId, endpointId))) throw unknownEndpoint(endpointId);
    const present = await knownEndpoint(trx, wabaId, endpointId);
    const { move, customHeadersSealed } = headersAfterChange(secretBox, present, {
      ...options,
      ...(checked.url !== undefined && { url: checked.url }),
    });
    if (checked.url !== undefined && checked.url !== present.url)
      await refuseMoveUnderReplay(trx, actor, present.id);
    const urlSetByKey = actor.apiKey?.id ?? null;
    const app = changeAppSecret(secretBox, { ...present, ...checked }, options.appSecret);
    const { appSecretSealed } = app;
    const sealed = { customHeadersSealed, appSecretSealed };
    const settings = { ...present, ...checked, ...sealed, urlSetByKey };
    checkBuffering(settings);
    await saveEndpointOptions(trx, wabaId, settings);
    if (signsWithKey(checked) && present.signingKeySealed === null) {
      const change = { id: present.id, sealed: newSealedKey(secretBox, present.id), overlapHours: 0 };
      await replaceEndpointSecret(trx, wabaId, 'signing_key', change);
    }
    const updated = await knownEndpoint(trx, wabaId, endpointId);
    const changed = Object.keys(options).sort().join(', ');
    const detail = { changed, ...moveDetail(present.url, updated.url, move) };
    const target = endpointName(endpointId);
    await recordChange(trx, actor, { wabaId, action: 'endpoint.updated', target, detail });
    // Last: publishers wait for nothing but the commit.
    if (updated.orderScope !== present.orderScope) await refuseWhilePending(trx, present);
    return { view: endpointView(secretBox, updated), move, appSecret: app.made };
  });
  return { ...view, ...move, appSecret, ...(await sameUrlOf(database, view)) };
}

/** Pending deliveries keep their lanes, so later ones could overtake them in others. Throws RequestError `deliveries_pending`. */
async function refuseWhilePending(trx: Transaction, endpoint: Endpoint): Promise<void> {
  const pending = await lockLanes(trx, endpoint);
  if (pending.count === 0) return;
  const number = shownCount(pending);
  throw new RequestError(
    'deliveries_pending',
    `The ordering cannot change now: ${number} ${number === '1' ? 'delivery is' : 'deliveries are'} pending, and later events could overtake them. ` +
      'Try again when they are delivered or dropped; those of a paused replay count too.',
    'orderScope',
  );
}

/** A key that may not read events must not send those of a replay to another URL. Throws RequestError `insufficient_scope`. */
async function refuseMoveUnderReplay(
  trx: Transaction,
  { apiKey, isPlatformKey = false }: Actor,
  endpointId: string,
): Promise<void> {
  if (apiKey?.mayReadEvents ?? !isPlatformKey) return;
  if (!(await hasReplayHeads(trx, endpointId))) return;
  throw new RequestError(
    'insufficient_scope',
    'A replay to this endpoint is not finished. Until then, changing the URL needs the scope read_events or read too.',
  );
}

/** Throws RequestError: `invalid_value`, `unknown_waba`. */
export async function endpointsOf(
  { database, secretBox }: SealedDatabase,
  wabaId: string,
  { afterId = '0', limit = Number.POSITIVE_INFINITY, maxWaiting = undefined as number | undefined } = {},
): Promise<EndpointStatus[]> {
  await knownWaba(database, wabaId);
  const all = await listEndpoints(database, wabaId);
  const page = all.filter(({ id }) => BigInt(id) > BigInt(afterId)).slice(0, limit);
  const views = page.map((endpoint) => endpointView(secretBox, endpoint));
  return await withWaiting(database, views, maxWaiting);
}

/** Throws RequestError: `invalid_value`, `unknown_endpoint`. */
export async function endpointStatus(
  { database, secretBox }: SealedDatabase,
  wabaId: string,
  endpointId: string,
): Promise<EndpointStatus> {
  const endpoint = await knownEndpoint(database, wabaId, endpointId);
  const [status] = await withWaiting(database, [endpointView(secretBox, endpoint)]);
  if (status === undefined) throw unknownEndpoint(endpointId);
  return status;
}

async function withWaiting(
  database: Database,
  endpoints: readonly EndpointView[],
  maxCounted?: number,
): Promise<EndpointStatus[]> {
  const ids = endpoints.map((endpoint) => endpoint.id);
  const waiting = await countWaiting(database, ids, maxCounted);
  return endpoints.flatMap((endpoint) => {
    const counted = waiting.get(endpoint.id);
    return counted === undefined
      ? []
      : [{ ...endpoint, waiting: counted, recoveringSince: recoveringSince(endpoint, counted) }];
  });
}

/** For operators, who address endpoints of every WABA. Throws RequestError: `invalid_value`, `unknown_endpoint`. */
export async function endpointForOperator(
  { database }: { database: Database },
  endpointId: string,
): Promise<Pick<Endpoint, 'id' | 'wabaId' | 'url'>> {
  const endpoint = await findEndpointForOperator(database, checkRowId('The id of the endpoint', endpointId));
  if (endpoint === null) throw unknownEndpoint(endpointId);
  return endpoint;
}

/** Throws RequestError: `invalid_value`, `unknown_endpoint`, also for another WABA's. */
export async function knownEndpoint(
  database: Database,
  wabaId: string,
  endpointId: string,
): Promise<Endpoint> {
  const endpoint = await findEndpoint(database, wabaId, checkRowId('The id of the endpoint', endpointId));
  if (endpoint === null) throw unknownEndpoint(endpointId);
  return endpoint;
}

export function endpointName(endpointId: string): string {
  return `endpoint ${endpointId}`;
}

export function unknownEndpoint(endpointId: string): RequestError {
  return new RequestError('unknown_endpoint', `There is no webhook endpoint ${endpointId}.`);
}

function signsWithKey({ asymmetricSignature }: Partial<StoredEndpointOptions>): boolean {
  return asymmetricSignature === 'ed25519';
}

function newSealedKey(secretBox: SecretBox, id: string): string {
  return secretBox.seal(newSigningKey(), ENDPOINT_SIGNING_KEY.place(id));
}

/** Null: the present key. */
type PublicKey = { publicKey: string; expiresAt: Date | null };

/**
 * Without secrets, and of the custom headers the names alone, because values are often credentials. `customHeaderNames` or `publicKeys`
 * null: the encryption key they were stored with is missing.
 */
export type EndpointView = Omit<
  Endpoint,
  | 'customHeadersSealed'
  | 'appSecretSealed'
  | 'signingKeySealed'
  | 'previousSigningKeySealed'
  | 'previousSigningKeyExpiresAt'
  | 'clientCertificatePem'
> & {
  customHeaderNames: string[] | null;
  /** The present one first; none while no such signature is asked for. */
  publicKeys: PublicKey[] | null;
  clientCertificate: CertificateView | null;
};

function endpointView(secretBox: SecretBox, endpoint: Endpoint): EndpointView {
  const {
    customHeadersSealed,
    appSecretSealed,
    signingKeySealed,
    previousSigningKeySealed,
    previousSigningKeyExpiresAt,
    clientCertificatePem,
    ...shown
  } = endpoint;
  return {
    ...shown,
    customHeaderNames: customHeaderNames(secretBox, endpoint),
    publicKeys: publicKeysOf(secretBox, endpoint),
    clientCertificate: clientCertificatePem === null ? null : certificateView(clientCertificatePem),
  };
}

function publicKeysOf(secretBox: SecretBox, endpoint: Endpoint): PublicKey[] | null {
  const { signingKeySealed, previousSigningKeySealed, previousSigningKeyExpiresAt } = endpoint;
  const opened = (sealed: string | null, expiresAt: Date | null): PublicKey[] => {
    if (sealed === null || !signsWithKey(endpoint)) return [];
    const signingKey = secretBox.open(sealed, ENDPOINT_SIGNING_KEY.place(endpoint.id));
    return [{ publicKey: publicKeyOf(signingKey), expiresAt }];
  };
  try {
    const previous = opened(previousSigningKeySealed, previousSigningKeyExpiresAt);
    return [...opened(signingKeySealed, null), ...previous];
  } catch (error) {
    if (error instanceof SecretBoxError) return null;
    throw error;
  }
}
