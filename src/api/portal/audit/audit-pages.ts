import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { readTenantPolicy } from '../../../accounts/tenant-policies.ts';
import { listAudit, recordBy, type StoredAuditEntry } from '../../../platform/audit/audit.ts';
import { exportAudit } from '../../../platform/audit/audit-chain.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { PAGES } from '../access/page-access.ts';
import { sendPage } from '../access/send-page.ts';
import { actorOf, wabaOf } from '../access/viewer.ts';
import { textField } from '../components/form.ts';
import { pager } from '../components/pager.ts';
import { dataTable, emptyState } from '../components/table.ts';
import { exactTime } from '../components/time.ts';
import { type Child, html, type Markup, nothing } from '../markup.ts';
import { hrefWith } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

const TITLE = 'Audit log';
const PAGE_SIZE = 50;
const EXPORTED_AT_ONCE = 100;
const OPERATOR_PATH = '/portal/operator/audit';

const Filter = Type.Object({
  action: Type.Optional(Type.String({ maxLength: 320 })),
  actor: Type.Optional(Type.String({ maxLength: 320 })),
  cursor: Type.Optional(Type.String()),
});
type Filter = Static<typeof Filter>;

type Place = { path: string; owner: { tenantId?: string; wabaId?: string }; isOperators: boolean };

/** Who changed what: of one WABA and its tenant (/portal/w/:wabaId/audit), and of all (/portal/operator/audit). */
export function auditPages(app: PortalApp, context: PortalContext): void {
  const schema = { querystring: Filter };
  app.get('/portal/w/:wabaId/audit', { config: PAGES.member, schema }, async (request, reply) => {
    const waba = wabaOf(request);
    const { tenantId, wabaId } = waba;
    const path = `/portal/w/${wabaId}/audit`;
    const body = await auditBody(context, request.query, {
      path,
      owner: { tenantId, wabaId },
      isOperators: false,
    });
    const { auditDays } = await readTenantPolicy(context.database, tenantId);
    const kept = auditDays === null ? '' : ` They are kept for ${auditDays} days.`;
    const lead = `All changes by pages, API keys and commands, and what operators have read. Entries cannot be changed or deleted.${kept}`;
    return sendPage(reply, { title: TITLE, active: 'audit', lead, body });
  });
  app.get(OPERATOR_PATH, { config: PAGES.operator, schema }, async (request, reply) => {
    const place = { path: OPERATOR_PATH, owner: {}, isOperators: true };
    const body = await auditBody(context, request.query, place);
    const lead = 'All changes of all tenants. Entries cannot be changed or deleted.';
    return sendPage(reply, { title: TITLE, active: 'operator/audit', lead, body });
  });
}

/** GET …/audit/export: all entries as JSON lines; those of operators have the hashes of the chain. */
export function auditExports(app: PortalApp, { database }: PortalContext): void {
  app.get('/portal/w/:wabaId/audit/export', { config: PAGES.member }, async (request, reply) => {
    const { tenantId, wabaId } = wabaOf(request);
    await noteExport(request, database, { tenantId, wabaId });
    return sendLines(reply, tenantEntries(database, { tenantId, wabaId }));
  });
  app.get(`${OPERATOR_PATH}/export`, { config: PAGES.operator }, async (request, reply) => {
    await noteExport(request, database, { tenantId: null, wabaId: null });
    return sendLines(reply, exportAudit(database));
  });
}

async function noteExport(
  request: FastifyRequest,
  database: Database,
  owner: { tenantId: string | null; wabaId: string | null },
): Promise<void> {
  const change = { ...owner, action: 'audit.exported', target: 'audit log', detail: {} };
  await recordBy(database, actorOf(request), change);
}

function sendLines(reply: FastifyReply, lines: AsyncGenerator<string>): FastifyReply {
  reply.header('content-disposition', 'attachment; filename="audit.jsonl"');
  return reply.type('application/x-ndjson; charset=utf-8').send(Readable.from(lines));
}

/** What the pages of a tenant show, the newest first. */
async function* tenantEntries(
  database: Database,
  owner: { tenantId: string; wabaId: string },
): AsyncGenerator<string> {
  for (let beforeId: string | null = null; ; ) {
    const entries: StoredAuditEntry[] = await listAudit({ database }, owner, {
      beforeId,
      limit: EXPORTED_AT_ONCE,
    });
    yield entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
    beforeId = entries.at(-1)?.id ?? null;
    if (entries.length < EXPORTED_AT_ONCE) return;
  }
}

async function auditBody(
  { database, cursors }: PortalContext,
  { action = '', actor = '', cursor }: Filter,
  { path, owner, isOperators }: Place,
): Promise<Markup> {
  const scope = [path, action, actor];
  const [beforeId = null] = (cursor !== undefined && cursors.decode(scope, cursor)) || [];
  const filter = { action, actor, beforeId, limit: PAGE_SIZE + 1 };
  const found = await listAudit({ database }, owner, filter);
  const entries = found.slice(0, PAGE_SIZE);
  const last = found.length > PAGE_SIZE ? entries.at(-1) : undefined;
  const hrefOf = (more: Record<string, string>) => hrefWith(path, { action, actor, ...more });
  const nextHref = last === undefined ? null : hrefOf({ cursor: cursors.encode(scope, [last.id]) });
  const list =
    entries.length === 0
      ? emptyState('No entries', noneText(action !== '' || actor !== ''))
      : auditTable(entries, isOperators, hrefOf);
  return html`${filterForm(path, action, actor)}<p><a href="${path}/export" download>Download all as JSON lines</a></p>${list}
${pager({ firstHref: beforeId === null ? null : hrefOf({}), nextHref })}`;
}

function noneText(isNarrowed: boolean): string {
  return isNarrowed
    ? 'No entry matches these filters. Action and actor must match exactly.'
    : 'Changes of endpoints, keys, users and settings are listed here from now on.';
}

function filterForm(path: string, action: string, actor: string): Markup {
  return html`<form method="get" action="${path}" class="filters">
${textField({ label: 'Action', name: 'action', value: action, placeholder: 'endpoint.paused', maxLength: 320 })}
${textField({ label: 'Actor', name: 'actor', value: actor, placeholder: 'ann@example.com', maxLength: 320 })}
<button>Filter</button>${(action !== '' || actor !== '') && html`<a href="${path}">Show all</a>`}</form>`;
}

function auditTable(
  entries: readonly StoredAuditEntry[],
  isOperators: boolean,
  hrefOf: (more: Record<string, string>) => string,
): Markup {
  const owner = isOperators ? ['Tenant, WABA'] : [];
  const labels = ['Time', 'Actor', 'Action', 'Target', 'Detail', ...owner];
  return dataTable(
    'Audit log',
    labels,
    entries.map(({ at, actor, actorUserId, action, target, detail, tenantId, wabaId, ip }) => [
      exactTime(at),
      html`<span class="break"><a href="${hrefOf({ actor })}">${actor}</a>${whence(isOperators ? actorUserId : null, ip)}</span>`,
      html`<a href="${hrefOf({ action })}">${action}</a>`,
      html`<span class="break">${target}</span>`,
      html`<span class="break">${detailText(detail)}</span>`,
      ...(isOperators
        ? [html`${tenantId ?? '–'}${wabaId !== null && html` <br /><code>${wabaId}</code>`}`]
        : []),
    ]),
  );
}

/** As which user, where that is to be told, and from which address. */
function whence(userId: string | null, ip: string | null): Child {
  const parts = [...(userId === null ? [] : [`user ${userId}`]), ...(ip === null ? [] : [`from ${ip}`])];
  return parts.length === 0 ? nothing : html` <span class="faint">${parts.join(', ')}</span>`;
}

function detailText(detail: StoredAuditEntry['detail']): string {
  return Object.entries(detail)
    .filter(([, value]) => value !== null && value !== '')
    .map(([name, value]) => `${name}: ${value}`)
    .join('; ');
}
