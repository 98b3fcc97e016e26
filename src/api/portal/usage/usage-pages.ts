import { listTenants } from '../../../features/accounts/accounts.ts';
import { USAGE_METRICS } from '../../../features/accounts/usage-alerts.ts';
import {
  readUsage,
  type UsageCost,
  type UsageGroup,
  type UsageQuestion,
  type UsageRow,
  usageAsOf,
} from '../../../features/messages/usage-days.ts';
import { usageFile, withTenantNames } from '../../accounts/usage-file.ts';
import { PAGES } from '../access/page-access.ts';
import { dataTable, emptyState, statRow } from '../components/table.ts';
import { timeAgo } from '../components/time.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import { hrefWith } from '../navigation.ts';
import { barChart } from '../overview/overview-charts.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

const GROUPS: Readonly<Record<UsageGroup, string>> = {
  category: 'Category',
  pricingType: 'Pricing type',
  country: 'Country',
  phoneNumberId: 'Number',
};

const NO_MESSAGES = emptyState(
  'No messages in this month',
  'Messages are counted by the statuses that upstream reports.',
);

const MAX_ROWS = 500;
const MAX_FILE_ROWS = 50_000;

/** How many messages of a WABA were sent and received: a month by day and by group, and as a file. */
export function usagePages(app: PortalApp, context: PortalContext): void {
  const place = { path: '/portal/w/:wabaId/usage', access: PAGES.member, active: 'usage' };
  viewPage(app, context, { ...place, query: ['month', 'by'], view: usageView });
  viewPage(app, context, { ...place, path: `${place.path}/csv`, query: ['month'], view: sendCsv });
  const ofAll = { path: '/portal/operator/usage', access: PAGES.operator, active: 'operator/usage' };
  viewPage(app, context, { ...ofAll, query: ['month'], view: operatorView });
  viewPage(app, context, { ...ofAll, path: `${ofAll.path}/csv`, query: ['month'], view: sendOperatorCsv });
}

/** The month that is asked for, or the present one; `days`: so many of it have begun. */
function monthOf(visit: Visit) {
  const today = visit.now.toISOString().slice(0, 10);
  const asked = visit.query('month') ?? '';
  const month = /^20\d\d-(?:0[1-9]|1[0-2])$/.test(asked) ? asked : today.slice(0, 7);
  const [year = 0, number = 0] = month.split('-').map(Number);
  const at = (months: number, day: number) =>
    new Date(Date.UTC(year, number - 1 + months, day)).toISOString().slice(0, 10);
  const last = at(1, 0);
  const begun = today.startsWith(month) ? today : last;
  return {
    month,
    from: `${month}-01`,
    to: last,
    days: Number(begun.slice(8)),
    before: at(-1, 1).slice(0, 7),
    after: at(1, 1).slice(0, 7),
  };
}

async function usageView(visit: Visit) {
  const { context, waba, now } = visit;
  const { database } = context;
  const by = Object.keys(GROUPS).find((name): name is UsageGroup => name === visit.query('by')) ?? 'category';
  const { month, from, to, days } = monthOf(visit);
  const ask = async (granularity: UsageQuestion['granularity'], groupBy: UsageGroup[]) =>
    await readUsage(database, { wabaId: waba.wabaId, from, to, granularity, groupBy }, MAX_ROWS);
  const [asOf, [total], byDay, byGroup] = await Promise.all([
    usageAsOf(database),
    ask('month', []),
    ask('day', []),
    ask('month', [by]),
  ]);
  return {
    title: 'Usage',
    lead: leadOf(month, asOf, now),
    actions: monthLinks(visit, { by }),
    assets: ['overview.css'],
    body:
      total === undefined
        ? NO_MESSAGES
        : html`${statRow([...USAGE_METRICS.map((name) => ({ label: labelOf(name), value: total[name].toLocaleString('en-US') })), ...costStat(total.cost)])}
<section class="card charts"><h2>Messages per day</h2>${dayChart(month, days, byDay)}</section>
<section class="card"><h2>By ${GROUPS[by].toLowerCase()}</h2>${groupSwitch(visit, month, by)}${groupTable(by, byGroup)}
<p class="hint">Amounts are those that upstream reports; its invoice has the last word.</p></section>`,
  };
}

function leadOf(month: string, asOf: Date | null, now: Date): Markup {
  return html`Messages of ${month}, by UTC day${asOf === null ? '' : html`, counted ${timeAgo(asOf, now)}`}.`;
}

function monthLinks(visit: Visit, kept: { by?: string }): Markup {
  const { month, before, after } = monthOf(visit);
  const link = (of: string, text: string) =>
    html`<a class="button" href="${hrefWith(visit.path, { month: of, ...kept })}">${text}</a>`;
  return html`${link(before, 'Month before')} ${after <= visit.now.toISOString().slice(0, 7) && link(after, 'Month after')} <a class="button" href="${hrefWith(`${visit.path}/csv`, { month })}">Download CSV</a>`;
}

/** A month of all tenants, each in its line, those with the most messages first. */
async function operatorView(visit: Visit) {
  const { database } = visit.context;
  const { month } = monthOf(visit);
  const [asOf, rows, tenants] = await Promise.all([
    usageAsOf(database),
    ofTenants(visit, 'month'),
    listTenants(database),
  ]);
  const names = new Map(tenants.map(({ userId, businessName }) => [userId, businessName]));
  const volume = (row: UsageRow) => USAGE_METRICS.reduce((sum, name) => sum + row[name], 0);
  return {
    title: 'Usage',
    lead: leadOf(month, asOf, visit.now),
    actions: monthLinks(visit, {}),
    assets: ['overview.css'],
    body:
      rows.length === 0
        ? NO_MESSAGES
        : html`${countTable(
            'Tenant',
            rows.toSorted((one, other) => volume(other) - volume(one)),
            ({ tenantId = '' }) => {
              const name = names.get(tenantId);
              return name === undefined
                ? html`removed tenant ${tenantId}`
                : html`<a href="/portal/operator/tenants/${tenantId}">${name}</a>`;
            },
          )}
<p class="hint">Amounts are those that upstream reports; its invoice has the last word. Amounts of several currencies have no sum.</p>`,
  };
}

async function ofTenants(visit: Visit, granularity: UsageQuestion['granularity']): Promise<UsageRow[]> {
  const { from, to } = monthOf(visit);
  const question = { tenantId: null, byTenant: true, from, to, granularity, groupBy: [] };
  return await readUsage(visit.context.database, question, MAX_FILE_ROWS);
}

/** A month by day and tenant. */
async function sendOperatorCsv(visit: Visit) {
  const { context, reply } = visit;
  const rows = await withTenantNames(context.database, await ofTenants(visit, 'day'));
  reply.header('content-disposition', `attachment; filename="usage-${monthOf(visit).month}.csv"`);
  return reply
    .type('text/csv; charset=utf-8')
    .send(usageFile(rows, { groups: [], columns: ['userId', 'externalId'] }));
}

function labelOf(name: (typeof USAGE_METRICS)[number]): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

function costText(cost: UsageCost | null): string {
  return cost === null ? '–' : `${cost.amount} ${cost.currency ?? ''}`.trim();
}

function costStat(cost: UsageCost | null) {
  return cost === null ? [] : [{ label: 'Charged by upstream', value: costText(cost) }];
}

function dayChart(month: string, days: number, rows: readonly UsageRow[]): Markup {
  const byDay = new Map(rows.map((row) => [row.day, row]));
  const bars = Array.from({ length: days }, (_, index) => {
    const day = `${month}-${String(index + 1).padStart(2, '0')}`;
    const { delivered = 0, failed = 0 } = byDay.get(day) ?? {};
    return { name: String(index + 1), good: delivered, bad: failed };
  });
  return barChart(bars, {
    label: `Messages per day of ${month}`,
    caption: 'Messages per day',
    names: ['Day', 'Delivered', 'Failed'],
  });
}

function groupSwitch(visit: Visit, month: string, by: UsageGroup): Markup {
  const links = Object.entries(GROUPS).map(
    ([name, label]) =>
      html`<a href="${hrefWith(visit.path, { month, by: name })}" ${name === by && html`aria-current="page"`}>${label}</a>`,
  );
  return html`<nav class="views" aria-label="Group">${links}</nav>`;
}

function groupTable(by: UsageGroup, rows: readonly UsageRow[]): Markup {
  return countTable(GROUPS[by], rows, (row) => row[by] ?? 'not reported');
}

function countTable(heading: string, rows: readonly UsageRow[], nameOf: (row: UsageRow) => Child): Markup {
  const numbers = [...USAGE_METRICS.map(labelOf), 'Charged by upstream'];
  return dataTable(
    `Messages by ${heading.toLowerCase()}`,
    [heading, ...numbers.map((label) => ({ label, kind: 'number' as const }))],
    rows.map((row) => [
      nameOf(row),
      ...USAGE_METRICS.map((name) => row[name].toLocaleString('en-US')),
      costText(row.cost),
    ]),
  );
}

/** A month by day and all groups. */
async function sendCsv(visit: Visit) {
  const { context, waba, reply } = visit;
  const { month, from, to } = monthOf(visit);
  const groupBy = Object.keys(GROUPS) as UsageGroup[];
  const question = { wabaId: waba.wabaId, from, to, granularity: 'day' as const, groupBy };
  const rows = await readUsage(context.database, question, MAX_FILE_ROWS);
  reply.header('content-disposition', `attachment; filename="usage-${waba.wabaId}-${month}.csv"`);
  return reply.type('text/csv; charset=utf-8').send(usageFile(rows));
}
