import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { type KeyRequest, keyRequestWorkflowId } from '../../../keys/key-request-store.ts';
import {
  decideKeyRequest,
  keyRequestOf,
  keyRequestsOf,
  waitingKeyRequests,
} from '../../../keys/key-requests.ts';
import { RequestError } from '../../../platform/request-input.ts';
import { workflowUrl } from '../../../platform/temporal/client-connection.ts';
import { accountObjectId } from '../../external/schema-kit.ts';
import { PAGES } from '../access/page-access.ts';
import { sendPage } from '../access/send-page.ts';
import { actorOf, type Viewer, viewerOf } from '../access/viewer.ts';
import { postForm, textField } from '../components/form.ts';
import { detailList, emptyState } from '../components/table.ts';
import { formLine } from '../form-values.ts';
import { rowTable, showList } from '../kits/list-page.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { requestColumns, requestFacts } from './key-tables.ts';

const PATH = '/portal/operator/approvals';
const TITLE = 'Approvals';
const ACTIVE = 'operator/approvals';

const DONE = {
  approved: 'Approved. The tenant can now show the key, once, within 7 days.',
  denied: 'Denied. The tenant sees your note.',
};

const REQUESTS = {
  caption: 'All requests for API keys',
  columns: requestColumns(PATH).toSpliced(
    1,
    0,
    { label: 'Tenant', cell: ({ businessName }) => businessName },
    { label: 'WABA', cell: ({ wabaId }) => html`<code>${wabaId}</code>` },
  ),
};

export function approvalPages(app: PortalApp, context: PortalContext): void {
  viewPage(app, context, {
    ...{ path: PATH, access: PAGES.operator, active: ACTIVE, query: ['cursor'] },
    view: async (visit) => {
      const [waiting, all] = await Promise.all([
        waitingKeyRequests(context),
        showList(visit, {
          ...{ ...REQUESTS, pageSize: 25 },
          find: async (_, wanted) => await keyRequestsOf(context, null, wanted),
          positionOf: ({ id }) => [id],
        }),
      ]);
      const lead = 'Requests of tenants for API keys. A request without a decision expires after 7 days.';
      const body = html`${all.isFirstPage && waitingPart(visit, waiting)}
${!all.isEmpty && html`<h2>All requests</h2>${all.markup}`}`;
      return { title: TITLE, lead, done: DONE, body };
    },
  });
  approvalPage(app, context);
}

function waitingPart(visit: Visit, waiting: readonly KeyRequest[]): Markup {
  return waiting.length === 0
    ? emptyState('No pending requests', 'Requests for API keys are listed here.')
    : html`<h2>Pending (${waiting.length})</h2>${rowTable(visit, { ...REQUESTS, caption: 'Pending requests' }, waiting)}`;
}

function approvalPage(app: PortalApp, context: PortalContext): void {
  const params = Type.Object({ id: Type.String() });
  app.get(`${PATH}/:id`, { config: PAGES.operator, schema: { params } }, async (request, reply) =>
    showRequest(request, reply, context, { id: accountObjectId(request.params.id), note: '', error: null }),
  );

  const body = Type.Object({ decision: formLine(), note: formLine() });
  const options = { config: PAGES.operator, schema: { params, body } };
  app.post(`${PATH}/:id`, options, async (request, reply) => {
    const { note, decision } = request.body;
    const id = accountObjectId(request.params.id);
    const state = decision === 'approve' ? 'approved' : 'denied';
    try {
      if (decision !== 'approve' && decision !== 'deny') {
        throw new RequestError('invalid_value', 'Choose to approve or to deny.');
      }
      await decideKeyRequest({ database: context.database, actor: actorOf(request) }, id, { state, note });
    } catch (error) {
      if (!(error instanceof RequestError) || error.code === 'unknown_key_request') throw error;
      return await showRequest(request, reply, context, { id, note, error });
    }
    return reply.redirect(`${PATH}?done=${state}`, 303);
  });
}

async function showRequest(
  request: FastifyRequest,
  reply: FastifyReply,
  { config, database, now }: PortalContext,
  { id, note, error }: { id: string; note: string; error: RequestError | null },
): Promise<FastifyReply> {
  const found = await keyRequestOf({ database }, null, id);
  const facts = detailList([
    ['Tenant', found.businessName],
    ['WABA', html`<a href="/portal/w/${found.wabaId}/keys">${found.wabaId}</a>`],
    ...requestFacts(found, new Date(now())),
  ]);
  const url = workflowUrl(config.temporal, keyRequestWorkflowId(found.id));
  const view = {
    active: ACTIVE,
    title: `Request ${found.id}`,
    trail: [{ label: TITLE, href: PATH }],
    actions: html`<a class="button" href="${url}" rel="noreferrer">Workflow in the Temporal UI</a>`,
    notice: error === null || error.param === 'note' ? null : { kind: 'error' as const, text: error.message },
    body: html`<div class="card">${facts}</div>${decisionForm(viewerOf(request), found, note, error)}`,
  };
  return sendPage(reply, view, error === null ? 200 : 422);
}

function decisionForm(
  viewer: Viewer,
  { id, state }: KeyRequest,
  note: string,
  error: RequestError | null,
): Markup | false {
  if (state !== 'requested' && state !== 'approved') return false;
  const field = textField({
    label: 'Note',
    name: 'note',
    value: note,
    maxLength: 200,
    hint: 'Visible to the requester.',
    error: error?.param === 'note' ? error.message : null,
  });
  const approve = html`<button class="primary" name="decision" value="approve">Approve</button>`;
  const denyLabel = state === 'requested' ? 'Deny' : 'Withdraw the approval';
  return postForm(
    viewer,
    `${PATH}/${id}`,
    // Enter in the note presses the first button of the form: it must not decide anything.
    html`<button disabled hidden>Choose one below</button>${field}<div class="buttons">${state === 'requested' && approve}<button class="danger" name="decision" value="deny">${denyLabel}</button></div>`,
  );
}
