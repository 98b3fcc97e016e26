import { listUnboundPlatformKeys } from '../../features/keys/platform-keys.ts';
import type { Config } from '../../platform/config/config.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import { type Finding, ok, unlessFine, warn } from './findings.ts';

/** New installations have what it names. A development installation may have it all as it likes. */
export async function lookForRisks({
  config: { mode, portal, media, webhooks },
  database,
}: {
  config: Pick<Config, 'mode' | 'portal' | 'media' | 'webhooks'>;
  database: Database;
}): Promise<Finding[]> {
  if (mode === 'development') return [];
  return unlessFine(
    ok('second factor, URLs of files, quotas and ports of webhooks are as in a new installation'),
    portal.passwordSignIn &&
      portal.secondFactor === 'optional' &&
      warn(
        'a stolen password of an operator opens all tenants: no second factor is required',
        'set HELIOGRAPH_PORTAL_SECOND_FACTOR to operators or all',
      ),
    media.urlTtlSeconds === 0 &&
      warn(
        'URLs of received files are not signed and never expire',
        'set HELIOGRAPH_MEDIA_URL_TTL_SECONDS, for instance to 604800',
      ),
    ...(await missingQuotas(database)),
    ...(await otherPorts(database, webhooks.ports)),
    ...(await unboundPlatformKeys(database)),
  );
}

const QUOTAS = [
  ['stored_bytes_quota', 'stored files'],
  ['upload_files_per_day', 'the number of files that are uploaded per day'],
  ['upload_bytes_per_day', 'the bytes that are uploaded per day'],
] as const;

async function missingQuotas(database: Database): Promise<Finding[]> {
  const counts = QUOTAS.map(
    ([column]) => `count(*) filter (where p.${column} is null)::integer as ${column}`,
  );
  const [row = {}] = await query<Record<string, number>>(
    database,
    `select ${counts.join(', ')} from tenants t left join tenant_policies p on p.tenant_id = t.id`,
  );
  return QUOTAS.filter(([column]) => row[column]).map(([column, what]) =>
    warn(`${row[column]} tenants have no quota for ${what}`, 'set one: "admin tenant set-policy"'),
  );
}

async function unboundPlatformKeys(database: Database): Promise<Finding[]> {
  const keys = (await listUnboundPlatformKeys(database)).map(({ id, name }) => `${id} (${name})`);
  if (keys.length === 0) return [];
  const todo = 'make keys with --networks in their place, and revoke these: "admin platform-key"';
  return [warn(`platform keys that make ways in may be used from anywhere: ${keys.join(', ')}`, todo)];
}

const MAX_NAMED = 10;

/** They go on being delivered; their URLs can no longer be chosen. */
async function otherPorts(database: Database, ports: readonly number[]): Promise<Finding[]> {
  const rows = await query<{ name: string; port: string }>(
    database,
    `select name, port
       from (select 'endpoint ' || id as name, ${portOf('url')} as port from webhook_endpoints
             union all
             select 'operations URL of WABA ' || waba_id, ${portOf('operations_url')} from wabas
              where operations_url is not null) urls
      where port <> all (cast(:ports as text[]))
      order by name limit :limit`,
    { ports: ports.map(String), limit: MAX_NAMED + 1 },
  );
  if (rows.length === 0) return [];
  const named = rows.slice(0, MAX_NAMED).map(({ name, port }) => `${name} (${port})`);
  const more = rows.length > MAX_NAMED ? ' and more' : '';
  const todo = 'have them moved, or add the ports to HELIOGRAPH_WEBHOOK_PORTS';
  return [warn(`webhooks go to other ports than new URLs may name: ${named.join(', ')}${more}`, todo)];
}

const portOf = (column: string) =>
  `coalesce(substring(split_part(${column}, '/', 3) from ':([0-9]+)$'), '443')`;
