import {
  createTenant,
  findTenant,
  listTenants,
  listTenantWabas,
  renameTenant,
} from '../../../features/accounts/accounts.ts';
import { removeTenant } from '../../../ops/erasures/account-removal.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { dataTable, emptyState } from '../components/table.ts';
import { columnTime } from '../components/time.ts';
import { type Form, formAction, formCard, formPage } from '../kits/form-page.ts';
import { listPage } from '../kits/list-page.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { removal } from './removal-form.ts';
import { setupLinkPath } from './setup-link-pages.ts';
import { addWabaPage } from './waba-forms.ts';

const PATH = '/portal/operator/tenants';
const ONE = `${PATH}/:id`;
const PLACE = { access: PAGES.operator, active: 'operator/tenants' };

const DONE = {
  renamed: 'The tenant is renamed.',
  removed: 'The tenant is removed.',
  'waba-removed': 'The WABA is removed.',
  created: 'The tenant is added. Add its WABA, and invite its first administrator under Users.',
};

const NAME = { name: 'name', label: 'Business name', required: true, maxLength: 200 } as const;

export function tenantPages(app: PortalApp, context: PortalContext): void {
  const show = listPage(app, context, {
    ...PLACE,
    path: PATH,
    title: 'Tenants',
    done: DONE,
    pageSize: 50,
    lead: 'A tenant is a business with its users, WABAs and keys.',
    columns: [
      {
        label: 'Business',
        cell: ({ userId, businessName }) => html`<a href="${PATH}/${userId}">${businessName}</a>`,
      },
      { label: 'userId', kind: 'number', cell: ({ userId }) => userId },
      { label: 'WABAs', cell: ({ wabaIds }) => wabaLinks(wabaIds) },
      { label: 'Added', kind: 'time', cell: ({ createdAt }) => columnTime(createdAt) },
    ],
    find: async () => await listTenants(context.database),
    empty: { title: 'No tenants yet', text: 'Add the first one below.' },
    below: (visit, refused) => formCard(visit, ADD, { subject: null, refused }),
  });
  formAction(app, context, { access: PLACE.access, form: ADD, show });
  tenantPage(app, context);
}

const ADD: Form<'name', null> = {
  action: PATH,
  heading: 'Add a tenant',
  fields: [NAME],
  button: 'Add the tenant',
  fieldOf: () => NAME.name,
  submit: async ({ tools }, given) => {
    const { userId } = await createTenant(tools, given.text('name'));
    return `${PATH}/${userId}?done=created`;
  },
};

function wabaLinks(wabaIds: readonly string[]): Markup[] | Markup {
  if (wabaIds.length === 0) return html`<span class="faint">none</span>`;
  return wabaIds.map((id) => html`<a href="/portal/operator/wabas/${id}"><code>${id}</code></a> `);
}

async function tenantOf({ context, id }: Visit) {
  const tenant = await findTenant(context.database, id);
  if (tenant === null) throw pageNotFound();
  return { id, name: tenant.businessName };
}

function tenantPage(app: PortalApp, context: PortalContext): void {
  const trail = (visit: Visit, { name }: { name: string }) => [
    { label: 'Tenants', href: PATH },
    { label: name, href: visit.at(ONE) },
  ];
  const part = { ...PLACE, isPart: true, load: tenantOf, trail };
  const adding = addWabaPage(app, context, { ...part, path: `${ONE}/wabas` });
  const renaming = formPage(app, context, {
    ...part,
    path: `${ONE}/rename`,
    title: 'Rename the tenant',
    fields: [NAME],
    values: ({ name }) => ({ name }),
    button: 'Rename the tenant',
    fieldOf: () => NAME.name,
    submit: async (visit, given) => {
      await renameTenant(visit.tools, visit.id, given.text('name'));
      return `${visit.at(ONE)}?done=renamed`;
    },
  });
  const removing = removal(app, context, {
    ...part,
    path: `${ONE}/remove`,
    title: 'Remove the tenant',
    remove: async ({ tools, id }) => {
      await removeTenant(tools, id);
      return `${PATH}?done=removed`;
    },
  });
  viewPage(app, context, {
    ...PLACE,
    path: ONE,
    view: async (visit) => {
      const subject = await tenantOf(visit);
      return {
        title: subject.name,
        trail: [{ label: 'Tenants', href: PATH }],
        actions: html`<a class="button" href="/portal/operator/users?tenant=${subject.id}">Users of the tenant</a><a class="button" href="${setupLinkPath({ tenant: subject.id })}">Set-up links</a><a class="button" href="${visit.path}/data">Data and storage</a>`,
        done: DONE,
        body: html`${await wabaTable(visit)}
${formCard(visit, adding, { subject })}
${formCard(visit, renaming, { subject })}
${formCard(visit, removing, { subject })}`,
      };
    },
  });
}

async function wabaTable({ context, id }: Visit): Promise<Markup> {
  const wabas = await listTenantWabas(context.database, id);
  if (wabas.length === 0)
    return emptyState('No WABAs yet', 'A WABA is a WhatsApp Business Account: add it with its access token.');
  const rows = wabas.map(({ wabaId, numbers }) => [
    html`<a href="/portal/operator/wabas/${wabaId}"><code>${wabaId}</code></a>`,
    numbers.join(', ') || html`<span class="faint">none</span>`,
    html`<a href="/portal/w/${wabaId}">Open in the portal</a>`,
  ]);
  return dataTable('WABAs', ['WABA', 'Numbers', ''], rows);
}
