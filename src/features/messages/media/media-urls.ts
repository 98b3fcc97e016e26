import { createHmac, timingSafeEqual } from 'node:crypto';
import { lazyInstallationKey } from '../../../platform/crypto/installation-secret.ts';
import type { SealedDatabase } from '../../../platform/crypto/sealed-database.ts';
import { queryValue } from '../../../platform/postgres/sql.ts';

/** Where stored inbound media is served: the product spec's public path root. */
const MEDIA_ROOT = '/received_media/';

/** Where a stored file is: the path, which has a signature where the tenant's addresses end, and the whole address. */
export type MediaLink = { mediaPath: string; mediaUrl: string };

export type MediaUrls = {
  /** The addresses are good from now on, for as long as the tenant wants. */
  linksOf(wabaId: string): Promise<(objectKey: string) => MediaLink>;
  /** Null: the tenant has set nothing. */
  check(
    file: { objectKey: string; tenantTtlSeconds: number | null },
    query: SignedQuery,
  ): Promise<'valid' | 'expired' | 'wrong'>;
};

export type SignedQuery = { expires?: string | undefined; signature?: string | undefined };

/** `ttlSeconds` is the installation's, which a tenant may shorten; 0: addresses are plain and do not end. */
export function makeMediaUrls(
  tools: SealedDatabase & { publicUrl: string; ttlSeconds: number },
  now: () => number = Date.now,
): MediaUrls {
  const { database, publicUrl } = tools;
  const key = lazyInstallationKey(tools, 'media urls');
  const linkOf = (path: string): MediaLink => ({ mediaPath: path, mediaUrl: `${publicUrl}${path}` });
  return {
    async linksOf(wabaId) {
      const ttlSeconds = effectiveTtl(tools.ttlSeconds, await readTenantTtl(database, wabaId));
      if (ttlSeconds === 0) return (objectKey) => linkOf(MEDIA_ROOT + objectKey);
      const signing = await key();
      const expires = String(Math.ceil(now() / 1_000) + ttlSeconds);
      return (objectKey) => {
        const signature = sign(signing, objectKey, expires).toString('base64url');
        return linkOf(`${MEDIA_ROOT}${objectKey}?expires=${expires}&signature=${signature}`);
      };
    },
    async check({ objectKey, tenantTtlSeconds }, { expires = '', signature = '' }) {
      if (effectiveTtl(tools.ttlSeconds, tenantTtlSeconds) === 0) return 'valid';
      const given = Buffer.from(signature, 'base64url');
      const expected = sign(await key(), objectKey, expires);
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) return 'wrong';
      return Number(expires) * 1_000 < now() ? 'expired' : 'valid';
    },
  };
}

/** A tenant's own may shorten the installation's, never lengthen it. */
function effectiveTtl(installation: number, tenant: number | null): number {
  if (tenant === null || tenant === 0) return installation;
  return installation === 0 ? tenant : Math.min(installation, tenant);
}

function sign(key: Buffer, objectKey: string, expires: string): Buffer {
  return createHmac('sha256', key).update(`${objectKey} ${expires}`).digest();
}

async function readTenantTtl(database: SealedDatabase['database'], wabaId: string): Promise<number | null> {
  return await queryValue<number>(
    database,
    `select p.media_url_ttl_seconds as "ttlSeconds"
       from wabas w join tenant_policies p on p.tenant_id = w.tenant_id where w.waba_id = :wabaId`,
    { wabaId },
  );
}
