import type { Config } from '../platform/config/config.ts';
import type { Database } from '../platform/postgres/database.ts';
import { query } from '../platform/postgres/sql.ts';
import { type Check, type Finding, ok, warn } from './checks.ts';

/** Names what new installations have and this one does not. A development installation may have it all as it likes. */
export function safetyCheck(
  { mode, portal, media, webhooks }: Pick<Config, 'mode' | 'portal' | 'media' | 'webhooks'>,
  database: Database,
): Check {
  const run = async (): Promise<Finding[]> => {
    if (mode === 'development') return [];
    const found: Finding[] = [];
    if (portal.passwordSignIn && portal.secondFactor === 'optional') {
      const todo = 'set HELIOGRAPH_PORTAL_SECOND_FACTOR to operators or all';
      found.push(
        warn('a stolen password of an operator opens all tenants: no second factor is required', todo),
      );
    }
    if (media.urlTtlSeconds === 0) {
      const todo = 'set HELIOGRAPH_MEDIA_URL_TTL_SECONDS, for instance to 604800';
      found.push(warn('URLs of received files are not signed and never expire', todo));
    }
    for (const [column, what] of QUOTAS) {
      const unlimited = await countTenantsWithoutQuota(database, column);
      const todo = 'set one: "admin tenant set-policy"';
      if (unlimited > 0) found.push(warn(`${unlimited} tenants have no quota for ${what}`, todo));
    }
    found.push(...(await otherPorts(database, webhooks.ports)));
    return found.length > 0
      ? found
      : [ok('second factor, URLs of files, quotas and ports of webhooks are as in a new installation')];
  };
  return { name: 'safety', todo: 'see the check "database" first', run };
}

/** What new tenants have limits of. */
const QUOTAS = [
  ['stored_bytes_quota', 'stored files'],
  ['upload_files_per_day', 'the number of files that are uploaded per day'],
  ['upload_bytes_per_day', 'the bytes that are uploaded per day'],
] as const;

async function countTenantsWithoutQuota(
  database: Database,
  column: (typeof QUOTAS)[number][0],
): Promise<number> {
  const [row] = await query<{ n: number }>(
    database,
    `select count(*)::integer as n from tenants t
      where not exists (select from tenant_policies p where p.tenant_id = t.id and p.${column} is not null)`,
  );
  return row?.n ?? 0;
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
