import { listEndpoints, type UrlSetByKey } from '../../engine/endpoint/store.ts';
import { newWebhookSecret } from '../../engine/endpoint/webhook-signature.ts';
import { knownWaba, saveOperationsUrl } from '../../features/accounts/accounts.ts';
import { checkWabaUrl, type UrlRules } from '../../features/endpoints/url-check.ts';
import { type Audited, recordChange } from '../../platform/audit/audit.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import { sealedSecret } from '../../platform/crypto/sealed-secret.ts';
import { isSameTarget } from '../../platform/http/same-target.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { query, queryOne } from '../../platform/postgres/sql.ts';
import { publicAlertId } from '../../platform/public-ids.ts';
import { RequestError } from '../../platform/request-input.ts';
import { alertName } from './alert-envelope.ts';
import { type AlertPosition, type ListedAlert, listEndpointAlerts } from './alert-notices.ts';

export const OPERATIONS_SECRET = sealedSecret({
  table: 'wabas',
  id: ['waba_id', 'text'],
  secret: 'operations_secret',
});

/**
 * `secret` is what the tenant verifies signatures with; null when it stays the one that was shown before.
 * `secretRotationAdvised`: alerts go to another server now, and the one before still knows it.
 */
export type SavedOperationsUrl = {
  wabaId: string;
  url: string;
  secret: string | null;
  secretRotationAdvised: boolean;
};

/** An alert that came up while there was no operations URL is `given_up` with 0 attempts. */
export type AlertView = Omit<ListedAlert, 'uuid' | 'alert'> & {
  alertId: string;
  alert: string;
  wabaId: string;
  state: 'waiting' | 'delivered' | 'given_up';
};

const MAX_LISTED = 100;

/**
 * Has the alerts of a WABA's endpoints sent to a URL. The first time there is a secret to sign them with. A URL that
 * receives webhooks is refused: alerts are no events.
 * Throws RequestError: `invalid_value`, `unknown_waba`, `url_is_webhook_endpoint`, `rate_limit_exceeded`, or the code of
 * the refused URL.
 */
export async function setOperationsUrl(
  tools: SealedDatabase & { urlRules: UrlRules } & Audited,
  wabaId: string,
  text: string,
): Promise<SavedOperationsUrl> {
  const { database } = tools;
  await knownWaba(database, wabaId);
  const stored = await findOperationsUrl(database, wabaId);
  const url = await checkWabaUrl(tools, wabaId, text, { presentUrl: stored?.url ?? null });
  const endpoint = (await listEndpoints(database, wabaId)).find((known) => isSameTarget(known.url, url));
  if (endpoint !== undefined) {
    throw new RequestError(
      'url_is_webhook_endpoint',
      `Webhook endpoint ${endpoint.id} has this URL. Use a different URL: alerts must not go to a webhook endpoint.`,
    );
  }
  if (stored?.secretSealed) {
    await save(tools, wabaId, { url, action: 'operations_url.set' });
    const isMoved = stored.url !== null && new URL(stored.url).origin !== new URL(url).origin;
    return { wabaId, url, secret: null, secretRotationAdvised: isMoved };
  }
  const secret = await saveWithNewSecret(tools, wabaId, url, 'operations_url.set');
  return { wabaId, url, secret, secretRotationAdvised: false };
}

/** Where a WABA's alerts go; null when nowhere. Throws RequestError: `invalid_value`, `unknown_waba`. */
export async function operationsUrlOf(
  { database }: { database: Database },
  wabaId: string,
): Promise<string | null> {
  await knownWaba(database, wabaId);
  return (await findOperationsUrl(database, wabaId))?.url ?? null;
}

/** Alerts that wait are dropped when they are due. Throws RequestError: `invalid_value`, `unknown_waba`. */
export async function clearOperationsUrl(
  tools: { database: Database } & Audited,
  wabaId: string,
): Promise<void> {
  await knownWaba(tools.database, wabaId);
  await save(tools, wabaId, { url: null, action: 'operations_url.removed' });
}

/** From the next attempt on it alone signs. Throws RequestError: `invalid_value`, `unknown_waba`, `no_operations_url`. */
export async function rotateOperationsSecret(
  tools: SealedDatabase & Audited,
  wabaId: string,
): Promise<SavedOperationsUrl> {
  const url = await operationsUrlOf(tools, wabaId);
  if (url === null) throw new RequestError('no_operations_url', `WABA ${wabaId} has no operations URL.`);
  const secret = await saveWithNewSecret(tools, wabaId, url, 'operations_url.secret_rotated');
  return { wabaId, url, secret, secretRotationAdvised: false };
}

/** The newest alerts of a WABA, or those before one. Throws RequestError: `invalid_value`, `unknown_waba`. */
export async function endpointAlertsOf(
  { database }: { database: Database },
  wabaId: string,
  { before = null as AlertPosition | null, limit = MAX_LISTED } = {},
): Promise<AlertView[]> {
  await knownWaba(database, wabaId);
  const rows = await listEndpointAlerts(database, wabaId, { before, limit });
  return rows.map(({ uuid, alert, ...listed }) => ({
    alertId: publicAlertId(uuid),
    alert: alertName(alert),
    wabaId,
    state: listed.deliveredAt !== null ? 'delivered' : listed.givenUpAt !== null ? 'given_up' : 'waiting',
    ...listed,
  }));
}

async function saveWithNewSecret(
  tools: SealedDatabase & Audited,
  wabaId: string,
  url: string,
  action: string,
): Promise<string> {
  const secret = newWebhookSecret();
  const secretSealed = tools.secretBox.seal(secret, OPERATIONS_SECRET.place(wabaId));
  await save(tools, wabaId, { url, secretSealed, action });
  return secret;
}

async function save(
  { database, actor }: { database: Database } & Audited,
  wabaId: string,
  { url, secretSealed = null, action }: { url: string | null; secretSealed?: string | null; action: string },
): Promise<void> {
  await database.transaction(async (trx) => {
    const before = (await findOperationsUrl(trx, wabaId))?.url ?? null;
    await saveOperationsUrl(trx, wabaId, { url, secretSealed, keyId: actor.apiKey?.id ?? null });
    const [host, previousHost] = [hostOf(url), hostOf(before)];
    const target = `operations URL of ${wabaId}`;
    const detail = { host, ...(previousHost !== host && { previousHost }) };
    await recordChange(trx, actor, { wabaId, action, target, detail });
  });
}

/** No more of a URL is written down: paths can be secrets. */
function hostOf(url: string | null): string | null {
  return url === null ? null : new URL(url).host;
}

type OperationsUrl = { url: string | null; secretSealed: string | null };

/** Both members are null where a WABA has no such URL. Null: there is no such WABA. */
export async function findOperationsUrl(database: Database, wabaId: string): Promise<OperationsUrl | null> {
  return await queryOne<OperationsUrl>(
    database,
    'select operations_url as url, operations_secret_sealed as "secretSealed" from wabas where waba_id = :wabaId',
    { wabaId },
  );
}

export async function listOperationsUrlsSetByKeys(
  database: Database,
  { days, limit }: { days: number; limit: number },
): Promise<Omit<UrlSetByKey, 'id'>[]> {
  return await query<Omit<UrlSetByKey, 'id'>>(
    database,
    `select waba_id as "wabaId", tenant_id as "tenantId", operations_url as url,
            operations_url_set_by_key as "keyId", operations_url_set_at as "setAt"
       from wabas
      where operations_url_set_by_key is not null and operations_url is not null
        and operations_url_set_at > now() - interval '1 day' * :days
      order by operations_url_set_at limit :limit`,
    { days, limit },
  );
}
