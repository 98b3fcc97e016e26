import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { createTenant, findTenant, listTenants, listTenantWabas } from '../../../accounts/accounts.ts';
import type { RequestError } from '../../../platform/request-input.ts';
import { PAGES } from '../access/page-access.ts';
import { orShown, pageNotFound } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { actorOf, viewerOf } from '../access/viewer.ts';
import { postForm, textField } from '../components/form.ts';
import { numberedPage, numberedPager } from '../components/pager.ts';
import { dataTable, emptyState } from '../components/table.ts';
import { exactTime } from '../components/time.ts';
import { formLine } from '../form-values.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { removalForm, renameForm } from './removal-pages.ts';
import { addWabaForm } from './waba-forms.ts';

const PATH = '/portal/operator/tenants';
const ACTIVE = 'operator/tenants';
const ROW_ID = /^\d{1,18}$/;

const DONE = {
  renamed: 'The tenant is renamed.',
  removed: 'The tenant is removed.',
  'waba-removed': 'The WABA is removed.',
  created: 'The tenant is added. Add its WABA, and invite its first administrator under Users.',
};

const PAGE_SIZE = 50;

type NameForm = { name: string; error: RequestError | null; page?: string | undefined };

/** /portal/operator/tenants: the businesses that use this installation. */
export function tenantPages(app: PortalApp, context: PortalContext): void {
  const querystring = Type.Object({ page: Type.Optional(Type.String()) });
  app.get(PATH, { config: PAGES.operator, schema: { querystring } }, async (request, reply) =>
    showTenants(request, reply, context, { name: '', error: null, ...request.query }),
  );
  const body = Type.Object({ name: formLine() });
  app.post(PATH, { config: PAGES.operator, schema: { body } }, async (request, reply) => {
    const { name } = request.body;
    return await orShown(
      async () => {
        const tools = { ...context.accounts, actor: actorOf(request) };
        const { userId } = await createTenant(tools, name);
        return reply.redirect(`${PATH}/${userId}?done=created`, 303);
      },
      (error) => showTenants(request, reply, context, { name, error }),
    );
  });
  tenantPage(app, context);
}

async function showTenants(
  request: FastifyRequest,
  reply: FastifyReply,
  { database }: PortalContext,
  { name, error, page }: NameForm,
): Promise<FastifyReply> {
  const viewer = viewerOf(request);
  const shown = numberedPage(await listTenants(database), page, PAGE_SIZE);
  const rows = shown.rows.map(({ userId, businessName, wabaIds, createdAt }) => [
    html`<a href="${PATH}/${userId}">${businessName}</a>`,
    userId,
    wabaLinks(wabaIds),
    exactTime(createdAt),
  ]);
  const columns = [
    'Business',
    { label: 'userId', kind: 'number' },
    'WABAs',
    { label: 'Added', kind: 'narrow' },
  ] as const;
  const field = { label: 'Business name', name: 'name', value: name, error: error?.message ?? null };
  const form = html`${textField({ ...field, required: true, maxLength: 200 })}<button class="primary">Add the tenant</button>`;
  const view = {
    title: 'Tenants',
    active: ACTIVE,
    done: DONE,
    lead: 'A tenant is a business with its users, WABAs and keys.',
    body: html`${rows.length === 0 ? emptyState('No tenants yet', 'Add the first one below.') : dataTable('Tenants', columns, rows)}${numberedPager(shown, (number) => `${PATH}?page=${number}`)}
<section class="card"><h2>Add a tenant</h2>${postForm(viewer, PATH, form)}</section>`,
  };
  return sendPage(reply, view, error === null ? 200 : 422);
}

function wabaLinks(wabaIds: readonly string[]): Markup[] | Markup {
  if (wabaIds.length === 0) return html`<span class="faint">none</span>`;
  return wabaIds.map((id) => html`<a href="/portal/operator/wabas/${id}"><code>${id}</code></a> `);
}

/** GET /portal/operator/tenants/:id: one tenant and its WABAs. */
function tenantPage(app: PortalApp, { database }: PortalContext): void {
  const params = Type.Object({ id: Type.String() });
  const options = { config: PAGES.operator, schema: { params } };
  app.get(`${PATH}/:id`, options, async (request, reply) => {
    const { id } = request.params;
    const tenant = ROW_ID.test(id) ? await findTenant(database, id) : null;
    if (tenant === null) throw pageNotFound();
    const wabas = await listTenantWabas(database, id);
    const viewer = viewerOf(request);
    const rows = wabas.map(({ wabaId, numbers }) => [
      html`<a href="/portal/operator/wabas/${wabaId}"><code>${wabaId}</code></a>`,
      numbers.join(', ') || html`<span class="faint">none</span>`,
      html`<a href="/portal/w/${wabaId}">Open in the portal</a>`,
    ]);
    return sendPage(reply, {
      title: tenant.businessName,
      active: ACTIVE,
      trail: [{ label: 'Tenants', href: PATH }],
      actions: html`<a class="button" href="/portal/operator/users?tenant=${id}">Users of the tenant</a><a class="button" href="${PATH}/${id}/data">Data and storage</a>`,
      done: DONE,
      body: html`${
        rows.length === 0
          ? emptyState('No WABAs yet', 'A WABA is a WhatsApp Business Account: add it with its access token.')
          : dataTable('WABAs', ['WABA', 'Numbers', ''], rows)
      }
<section class="card"><h2>Add a WABA</h2>${addWabaForm(viewer, id, { wabaId: '', error: null })}</section>
<section class="card"><h2>Rename the tenant</h2>${renameForm(viewer, id, { name: tenant.businessName })}</section>
<section class="card"><h2>Remove the tenant</h2>${removalForm(viewer, `${PATH}/${id}/remove`, id)}</section>`,
    });
  });
}
