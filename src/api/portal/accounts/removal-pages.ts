import { Type } from 'typebox';
import { findTenant } from '../../../accounts/accounts.ts';
import { removeNumber } from '../../../accounts/remove-number.ts';
import { renameTenant } from '../../../accounts/rename-tenant.ts';
import { removeTenant, removeWaba } from '../../../erasures/account-removal.ts';
import { RequestError } from '../../../platform/request-input.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { actorOf, type Viewer, viewerOf, wabaOf } from '../access/viewer.ts';
import { postForm, textField } from '../components/form.ts';
import { formLine } from '../form-values.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

const TENANTS = '/portal/operator/tenants';
const ROW_ID = /^\d{1,18}$/;

type Problem = { name?: string; error?: string | null };

/** Gives a tenant another name. */
export function renameForm(viewer: Viewer, tenantId: string, { name = '', error = null }: Problem): Markup {
  const field = { label: 'Business name', name: 'name', value: name, error, required: true, maxLength: 200 };
  return postForm(
    viewer,
    `${TENANTS}/${tenantId}/rename`,
    html`${textField(field)}<button class="primary">Rename the tenant</button>`,
  );
}

/** Takes a tenant or a WABA away, once its id was typed. */
export function removalForm(viewer: Viewer, path: string, id: string, error: string | null = null): Markup {
  const hint = html`Type <code>${id}</code>. All its API keys are revoked at once, and its endpoints are deleted with their pending deliveries. The history stays. Only the same tenant can add the WABA again.`;
  const field = { label: 'Confirm the id', name: 'confirm', hint, error, required: true, maxLength: 64 };
  return postForm(viewer, path, html`${textField(field)}<button class="danger">Remove</button>`);
}

/** What renames and removes tenants, WABAs and numbers. */
export function removalPages(app: PortalApp, context: PortalContext): void {
  tenantActions(app, context);
  wabaActions(app, context);
}

function tenantActions(app: PortalApp, { database }: PortalContext): void {
  const params = Type.Object({ id: Type.String() });
  const tenantOf = async (id: string) => {
    const tenant = ROW_ID.test(id) ? await findTenant(database, id) : null;
    if (tenant === null) throw pageNotFound();
    return tenant;
  };
  const rename = { params, body: Type.Object({ name: formLine() }) };
  app.post(`${TENANTS}/:id/rename`, { config: PAGES.operator, schema: rename }, async (request, reply) => {
    const { id } = request.params;
    await tenantOf(id);
    const { name } = request.body;
    try {
      await renameTenant({ database, actor: actorOf(request) }, id, name);
      return reply.redirect(`${TENANTS}/${id}?done=renamed`, 303);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      const viewer = viewerOf(request);
      const form = renameForm(viewer, id, { name, error: error.message });
      return sendPage(reply, problemView(viewer, 'Rename the tenant', `${TENANTS}/${id}`, form), 422);
    }
  });
  const remove = { params, body: Type.Object({ confirm: formLine() }) };
  const removal = { config: PAGES.operator, schema: remove };
  app.post(`${TENANTS}/:id/remove`, removal, async (request, reply) => {
    const { id } = request.params;
    await tenantOf(id);
    if (request.body.confirm.trim() !== id) {
      const viewer = viewerOf(request);
      const form = removalForm(viewer, `${TENANTS}/${id}/remove`, id, `Type ${id} to remove it.`);
      return sendPage(reply, problemView(viewer, 'Remove the tenant', `${TENANTS}/${id}`, form), 422);
    }
    await removeTenant({ database, actor: actorOf(request) }, id);
    return reply.redirect(`${TENANTS}?done=removed`, 303);
  });
}

function wabaActions(app: PortalApp, { database }: PortalContext): void {
  const body = Type.Object({ confirm: formLine() });
  app.post(
    '/portal/operator/wabas/:wabaId/remove',
    { config: PAGES.operator, schema: { body } },
    async (request, reply) => {
      const { wabaId, tenantId } = wabaOf(request);
      const path = `/portal/operator/wabas/${wabaId}`;
      if (request.body.confirm.trim() !== wabaId) {
        const viewer = viewerOf(request);
        const form = removalForm(viewer, `${path}/remove`, wabaId, `Type ${wabaId} to remove it.`);
        return sendPage(reply, problemView(viewer, 'Remove the WABA', path, form), 422);
      }
      await removeWaba({ database, actor: actorOf(request) }, wabaId);
      return reply.redirect(`${TENANTS}/${tenantId}?done=waba-removed`, 303);
    },
  );
  const number = Type.Object({ phoneNumberId: formLine() });
  app.post(
    '/portal/operator/wabas/:wabaId/remove-number',
    { config: PAGES.operator, schema: { body: number } },
    async (request, reply) => {
      const { wabaId } = wabaOf(request);
      try {
        await removeNumber({ database, actor: actorOf(request) }, wabaId, request.body.phoneNumberId);
      } catch (error) {
        if (error instanceof RequestError) throw pageNotFound();
        throw error;
      }
      return reply.redirect(`/portal/operator/wabas/${wabaId}?done=number-removed`, 303);
    },
  );
}

function problemView(viewer: Viewer, title: string, path: string, form: Markup) {
  const body = html`<section class="card">${form}</section>`;
  return { title, viewer, active: 'operator/tenants' as const, trail: [{ label: 'Back', href: path }], body };
}
