import type { Config } from '../../platform/config/config.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import { type Check, type Finding, ok, unlessFine, warn } from './checks.ts';

/** New installations have what it names. A development installation may have it all as it likes. */
export function safetyCheck(
  { mode, portal, media, webhooks }: Pick<Config, 'mode' | 'portal' | 'media' | 'webhooks'>,
  database: Database,
): Check {
  const run = async (): Promise<Finding[]> => {
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
    );
  };
  return { name: 'safety', todo: 'see the check "database" first', run };
}

const QUOTAS = [
  ['stored_bytes_quota', 'stored files'],
  ['upload_files_per_day', 'the number of files that are uploaded per day'],
  ['upload_bytes_per_day', 'the bytes that are uploaded per day'],
] as const;

async function missingQuotas(database: Database): Promise<Finding[]> {
  const found: Finding[] = [];
  for (const [column, what] of QUOTAS) {
    const [row] = await query<{ n: number }>(
      database,
      `select count(*)::integer as n from tenants t
        where not exists (select from tenant_policies p where p.tenant_id = t.id and p.${column} is not null)`,
    );
    const text = `${row?.n} tenants have no quota for ${what}`;
    if (row?.n) found.push(warn(text, 'set one: "admin tenant set-policy"'));
  }
  return found;
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
