import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { readTenantPolicy } from '../../../features/accounts/tenant-policies.ts';
import { listAudit, recordBy, type StoredAuditEntry } from '../../../platform/audit/audit.ts';
import { exportAudit } from '../../../platform/audit/audit-chain.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { PAGES } from '../access/page-access.ts';
import { columnTime } from '../components/time.ts';
import { type ListColumn, listPage, type Wanted } from '../kits/list-page.ts';
import { download } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup } from '../markup.ts';
import { hrefWith } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

const OF_WABA = { path: '/portal/w/:wabaId/audit', access: PAGES.member, active: 'audit' };
const OF_ALL = { path: '/portal/operator/audit', access: PAGES.operator, active: 'operator/audit' };

export function auditPages(app: PortalApp, context: PortalContext): void {
  listPage(app, context, { ...OF_WABA, ...LIST, columns: COLUMNS, lead: tenantLead });
  listPage(app, context, {
    ...OF_ALL,
    ...LIST,
    columns: [...COLUMNS, OWNER],
    lead: 'All changes of all tenants. Entries cannot be changed or deleted.',
  });
  for (const { path, access } of [OF_WABA, OF_ALL])
    download(app, context, { path: `${path}/export`, access, send: sendEntries });
}

const COLUMNS: ListColumn<StoredAuditEntry>[] = [
  { label: 'Time', kind: 'time', cell: ({ at }) => columnTime(at) },
  { label: 'Actor', cell: actorCell },
  {
    label: 'Action',
    cell: ({ action }, visit) => html`<a href="${narrowed(visit, { action })}">${action}</a>`,
  },
  { label: 'Target', cell: ({ target }) => html`<span class="break">${target}</span>` },
  { label: 'Detail', cell: ({ detail }) => html`<span class="break">${detailText(detail)}</span>` },
];

const OWNER: ListColumn<StoredAuditEntry> = {
  label: 'Tenant, WABA',
  cell: ({ tenantId, wabaId }) =>
    html`${tenantId ?? '–'}${wabaId !== null && html` <br /><code>${wabaId}</code>`}`,
};

const LIST = {
  title: 'Audit log',
  pageSize: 50,
  filters: [
    { name: 'action', label: 'Action', placeholder: 'endpoint.paused', maxLength: 320 },
    { name: 'actor', label: 'Actor', placeholder: 'ann@example.com', maxLength: 320 },
  ],
  find: async (visit: Visit, { filters: { action = '', actor = '' }, beforeId, limit }: Wanted) =>
    await listAudit(visit.context, ownerOf(visit), {
      action,
      actor,
      beforeId,
      limit,
      ofWabaOnly: isOfWabaOnly(visit),
    }),
  positionOf: ({ id }: StoredAuditEntry) => [id],
  actions: ({ path }: Visit) =>
    html`<a class="button" href="${path}/export" download>Download all as JSON lines</a>`,
  empty: (_: Visit, { action, actor }: Wanted['filters']) => ({
    title: 'No entries',
    text:
      action !== '' || actor !== ''
        ? 'No entry matches these filters. Action and actor must match exactly.'
        : 'Changes of endpoints, keys, users and settings are listed here from now on.',
  }),
};

function ownerOf({ request }: Visit): { tenantId?: string; wabaId?: string } {
  if (request.portalWaba === null) return {};
  const { tenantId, wabaId } = request.portalWaba;
  return { tenantId, wabaId };
}

/** A portal link of some WABAs does not show the people and settings of the whole tenant. */
function isOfWabaOnly({ viewer }: Visit): boolean {
  return viewer.link !== null && viewer.link.wabaIds !== null;
}

async function tenantLead({ context, waba }: Visit): Promise<string> {
  const { auditDays } = await readTenantPolicy(context.database, waba.tenantId);
  const kept = auditDays === null ? '' : ` They are kept for ${auditDays} days.`;
  return `All changes by pages, API keys and commands, and what operators have read. Entries cannot be changed or deleted.${kept}`;
}

function narrowed(visit: Visit, more: Record<string, string>): string {
  return hrefWith(visit.path, { action: visit.query('action'), actor: visit.query('actor'), ...more });
}

function actorCell({ actor, actorUserId, ip }: StoredAuditEntry, visit: Visit): Markup {
  const isNamed = visit.wabaId === null && actorUserId !== null;
  const whence = [...(isNamed ? [`user ${actorUserId}`] : []), ...(ip === null ? [] : [`from ${ip}`])];
  return html`<span class="break address"><a href="${narrowed(visit, { actor })}">${actor}</a>${whence.length > 0 && html` <span class="faint">${whence.join(', ')}</span>`}</span>`;
}

function detailText(detail: StoredAuditEntry['detail']): string {
  return Object.entries(detail)
    .filter(([, value]) => value !== null && value !== '')
    .map(([name, value]) => `${name}: ${value}`)
    .join('; ');
}

/** GET …/audit/export: all entries as JSON lines; those of operators have the hashes of the chain. */
async function sendEntries(visit: Visit): Promise<FastifyReply> {
  const { reply, context, actor } = visit;
  const { database } = context;
  const { tenantId = null, wabaId = null } = ownerOf(visit);
  const change = { tenantId, wabaId, action: 'audit.exported', target: 'audit log', detail: {} };
  await recordBy(database, actor, change);
  const lines =
    tenantId === null ? exportAudit(database) : tenantEntries(database, ownerOf(visit), isOfWabaOnly(visit));
  reply.header('content-disposition', 'attachment; filename="audit.jsonl"');
  return reply.type('application/x-ndjson; charset=utf-8').send(Readable.from(lines));
}

const EXPORTED_AT_ONCE = 100;

async function* tenantEntries(
  database: Database,
  owner: ReturnType<typeof ownerOf>,
  ofWabaOnly: boolean,
): AsyncGenerator<string> {
  for (let beforeId: string | null = null; ; ) {
    const entries: StoredAuditEntry[] = await listAudit({ database }, owner, {
      beforeId,
      limit: EXPORTED_AT_ONCE,
      ofWabaOnly,
    });
    yield entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
    beforeId = entries.at(-1)?.id ?? null;
    if (entries.length < EXPORTED_AT_ONCE) return;
  }
}
