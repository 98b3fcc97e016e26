import { Type } from 'typebox';
import {
  type ErasureTools,
  type ErasureView,
  eraseTenant,
  eraseUser,
  eraseWaba,
  erasureOf,
  erasuresOf,
} from '../../../erasures/erasures.ts';
import type { Audited } from '../../../platform/audit/audit.ts';
import { accountObjectId } from '../../external/schema-kit.ts';
import { PAGES } from '../access/page-access.ts';
import { orShown, pageNotFound } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { type Viewer, viewerOf } from '../access/viewer.ts';
import { postForm, selectField, textField } from '../components/form.ts';
import { pager } from '../components/pager.ts';
import { emptyState } from '../components/table.ts';
import { toolsOf } from '../endpoints/endpoint-status.ts';
import { formLine, formValues } from '../form-values.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { erasureTable, sendErasure, sendReport } from './erasure-pages.ts';

const PATH = '/portal/operator/erasures';
const ACTIVE = 'operator/erasures';
const SHOWN = 50;

const KINDS = [
  { value: 'waba', label: 'a WABA with its history' },
  { value: 'tenant', label: 'a tenant with its WABAs' },
  { value: 'user', label: 'a user of the portal' },
] as const;

/** Erasures of all kinds, for operators. */
export function operatorErasurePages(app: PortalApp, context: PortalContext): void {
  listPage(app, context);
  onePage(app, context);
  eraseAction(app, context);
}

function listPage(app: PortalApp, context: PortalContext): void {
  app.get(PATH, { config: PAGES.operator }, async (request, reply) => {
    const cursor = formValues(request.query).text('cursor');
    const scope = [ACTIVE];
    const beforeId = cursor === '' ? null : context.cursors.decode(scope, cursor)?.[0];
    if (beforeId === undefined) throw pageNotFound();
    const found = await erasuresOf(context, null, { beforeId, limit: SHOWN + 1 });
    const last = found.length > SHOWN ? found[SHOWN - 1] : undefined;
    const nextHref =
      last === undefined ? null : `${PATH}?cursor=${context.cursors.encode(scope, [last.erasureId])}`;
    const list = html`${erasureTable(PATH, found.slice(0, SHOWN), new Date(context.now()))}${pager({ firstHref: cursor === '' ? null : PATH, nextHref })}`;
    return sendPage(reply, {
      title: 'Erasures',
      active: ACTIVE,
      lead: 'What was erased permanently, each with a signed report. Customers are erased on the pages of their WABA.',
      body: html`${found.length === 0 ? emptyState('No erasures yet', 'Nothing was erased so far.') : list}
<section class="card"><h2>Erase a WABA, a tenant or a user</h2>${eraseForm(viewerOf(request))}</section>`,
    });
  });
}

function onePage(app: PortalApp, context: PortalContext): void {
  const options = { config: PAGES.operator, schema: { params: Type.Object({ id: Type.String() }) } };
  app.get(`${PATH}/:id`, options, async (request, reply) => {
    const erasure = await erasureOf(context, null, accountObjectId(request.params.id));
    return sendErasure(reply, context, viewerOf(request), erasure, { path: PATH, active: ACTIVE });
  });
  app.get(`${PATH}/:id/report`, options, async (request, reply) =>
    sendReport(reply, await erasureOf(context, null, accountObjectId(request.params.id))),
  );
}

const Asked = Type.Object({ kind: formLine(), id: formLine(), confirm: formLine() });

function eraseAction(app: PortalApp, context: PortalContext): void {
  const options = { config: PAGES.operator, schema: { body: Asked } };
  app.post(PATH, options, async (request, reply) => {
    const kind = request.body.kind.trim();
    const id = request.body.id.trim();
    const viewer = viewerOf(request);
    const show = (error: string) => {
      const body = html`<section class="card">${eraseForm(viewer, { kind, id, error })}</section>`;
      const trail = [{ label: 'Erasures', href: PATH }];
      return sendPage(reply, { title: 'Erase permanently', active: ACTIVE, trail, body }, 422);
    };
    if (id === '' || request.body.confirm.trim() !== `${kind} ${id}`)
      return show('Type the kind and the id, such as: waba 900000000000101');
    return await orShown(
      async () => {
        const { erasureId } = await eraseOf(toolsOf(request, context), viewer, kind, id);
        return reply.redirect(`${PATH}/${erasureId}`, 303);
      },
      ({ message }) => show(message),
    );
  });
}

async function eraseOf(
  tools: ErasureTools & Audited,
  viewer: Viewer,
  kind: string,
  id: string,
): Promise<ErasureView> {
  if (kind === 'waba') return await eraseWaba(tools, id);
  if (kind === 'tenant') return await eraseTenant(tools, id);
  if (kind !== 'user') throw pageNotFound();
  return await eraseUser(tools, { actor: tools.actor, tenantId: null, userId: viewer.userId }, id);
}

type Problem = { kind?: string; id?: string; error?: string };

function eraseForm(viewer: Viewer, { kind = 'waba', id = '', error }: Problem = {}): Markup {
  const hint = html`Type the kind and the id, such as <code>waba 900000000000101</code>. Backups and the audit log keep what they have; everything else is erased permanently.`;
  const confirm = { label: 'Confirmation', name: 'confirm', required: true, maxLength: 80, hint };
  return postForm(
    viewer,
    PATH,
    html`${selectField({ label: 'Erase', name: 'kind', value: kind, options: KINDS })}
${textField({ label: 'Id', name: 'id', value: id, required: true, maxLength: 64 })}
${textField({ ...confirm, error: error ?? null })}
<button class="danger">Erase permanently</button>`,
  );
}
