import { ENDPOINT_CLIENT_KEY } from '../../engine/endpoint/endpoint-secrets.ts';
import { lockEndpoint, setEndpointCertificate } from '../../engine/endpoint/store.ts';
import { type Audited, recordChange } from '../../platform/audit/audit.ts';
import { type CertificateView, checkClientCertificate } from '../../platform/crypto/client-certificate.ts';
import type { SealedDatabase } from '../../platform/crypto/sealed-database.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import { endpointName, knownEndpoint } from './endpoints.ts';

/** PEM; the certificate may bring its chain. */
export type GivenCertificate = { certificate: string; privateKey: string };

/**
 * Null removes it. It holds from the next attempt on, which then opens its own connection. Throws RequestError: `invalid_value`,
 * `unknown_endpoint`.
 */
export async function setClientCertificate(
  { database, secretBox, actor }: SealedDatabase & Audited,
  wabaId: string,
  endpointId: string,
  given: GivenCertificate | null,
): Promise<CertificateView | null> {
  const checked = given === null ? null : checkClientCertificate(given, new Date());
  return await database.transaction(async (trx) => {
    const { id } = await knownEndpoint(trx, wabaId, endpointId);
    await lockEndpoint(trx, wabaId, id);
    const target = endpointName(id);
    if (checked === null) {
      await setEndpointCertificate(trx, wabaId, { id, pem: null, keySealed: null, expiresAt: null });
      await recordChange(trx, actor, { wabaId, action: 'endpoint.client_certificate_removed', target });
      return null;
    }
    const { pem, privateKey, ...view } = checked;
    const keySealed = secretBox.seal(privateKey, ENDPOINT_CLIENT_KEY.place(id));
    await setEndpointCertificate(trx, wabaId, { id, pem, keySealed, expiresAt: view.expiresAt });
    const detail = {
      subject: view.subject,
      fingerprint: view.fingerprint,
      expiresAt: view.expiresAt.toISOString(),
    };
    await recordChange(trx, actor, { wabaId, action: 'endpoint.client_certificate_set', target, detail });
    return view;
  });
}

type ExpiringCertificate = { id: string; wabaId: string; tenantId: string; expiresAt: Date };

/** Also those that have expired; by endpoint. */
export async function listExpiringCertificates(
  database: Database,
  days: number,
  limit: number,
): Promise<ExpiringCertificate[]> {
  return await query<ExpiringCertificate>(
    database,
    `select e.id, e.waba_id as "wabaId", w.tenant_id as "tenantId", e.client_certificate_expires_at as "expiresAt"
       from webhook_endpoints e join wabas w on w.waba_id = e.waba_id and w.removed_at is null
      where e.client_certificate_expires_at <= now() + :days * interval '1 day'
      order by e.id limit :limit`,
    { days, limit },
  );
}
