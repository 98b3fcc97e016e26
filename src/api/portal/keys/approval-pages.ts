import { type KeyRequest, keyRequestWorkflowId } from '../../../keys/key-request-store.ts';
import {
  decideKeyRequest,
  keyRequestOf,
  pastKeyRequests,
  waitingKeyRequests,
} from '../../../keys/key-requests.ts';
import { invalidValue, type RequestError } from '../../../platform/request-input.ts';
import { workflowUrl } from '../../../platform/temporal/client-connection.ts';
import { PAGES } from '../access/page-access.ts';
import type { Viewer } from '../access/viewer.ts';
import { postForm, textField } from '../components/form.ts';
import { detailList, emptyState } from '../components/table.ts';
import { formLine } from '../form-values.ts';
import { action } from '../kits/action.ts';
import { type ListColumn, rowTable, showList } from '../kits/list-page.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { requestColumns, requestFacts } from './key-tables.ts';

const PATH = '/portal/operator/approvals';
const TITLE = 'Approvals';
const ACTIVE = 'operator/approvals';

const DONE = {
  approved: 'Approved. The tenant can now show the key, once, within 7 days.',
  denied: 'Denied. The tenant sees your note.',
};

const COLUMNS = requestColumns(PATH).toSpliced(1, 0, {
  label: 'Tenant, WABA',
  cell: ({ businessName, wabaId }) => html`${businessName}<br><code>${wabaId}</code>`,
});

/** What an operator decides by, and the decision, without another page. */
const PENDING_COLUMNS: ListColumn<KeyRequest>[] = [
  ...COLUMNS.slice(0, 5),
  {
    label: 'Scopes',
    cell: ({ scopes, validDays }) =>
      html`${scopes.join(', ')}<br><span class="faint">${validDays === null ? 'until revoked' : `${validDays} days`}</span>`,
  },
  { label: '', kind: 'narrow', cell: ({ id }, { viewer }) => rowDecision(viewer, id) },
];

function rowDecision(viewer: Viewer, id: string): Markup {
  const deny = html`<button class="danger" name="decision" value="deny" data-confirm="Deny this request? To add a note, open it.">Deny</button>`;
  return postForm(
    viewer,
    `${PATH}/${id}`,
    html`<input type="hidden" name="note" value=""><div class="buttons"><button class="primary" name="decision" value="approve">Approve</button>${deny}</div>`,
  );
}

export function approvalPages(app: PortalApp, context: PortalContext): void {
  viewPage(app, context, {
    ...{ path: PATH, access: PAGES.operator, active: ACTIVE, query: ['cursor'] },
    view: async (visit) => {
      const [waiting, all] = await Promise.all([
        waitingKeyRequests(context),
        showList(visit, {
          ...{ caption: 'Requests that were decided or have ended', columns: COLUMNS, pageSize: 25 },
          find: async (_, wanted) => await pastKeyRequests(context, wanted),
          positionOf: ({ id }) => [id],
        }),
      ]);
      const lead = 'Requests of tenants for API keys. A request without a decision expires after 7 days.';
      const body = html`${all.isFirstPage && waitingPart(visit, waiting)}
${!all.isEmpty && html`<h2>Decided and ended</h2>${all.markup}`}`;
      return { title: TITLE, lead, done: DONE, body };
    },
  });
  approvalPage(app, context);
}

function waitingPart(visit: Visit, waiting: readonly KeyRequest[]): Markup {
  return waiting.length === 0
    ? emptyState('No pending requests', 'Requests for API keys are listed here.')
    : html`<h2>Pending (${waiting.length})</h2>${rowTable(visit, { columns: PENDING_COLUMNS, caption: 'Pending requests' }, waiting)}`;
}

function approvalPage(app: PortalApp, context: PortalContext): void {
  const place = { path: `${PATH}/:id`, access: PAGES.operator, active: ACTIVE };
  viewPage(app, context, { ...place, view: (visit) => requestView(visit, '', null) });
  action(app, context, {
    ...{ ...place, fields: { decision: formLine(), note: formLine() } },
    needsAll: true,
    act: async (visit, given) => {
      const decision = given.text('decision');
      if (decision !== 'approve' && decision !== 'deny') throw invalidValue('Choose to approve or to deny.');
      const state = decision === 'approve' ? 'approved' : 'denied';
      await decideKeyRequest(visit.tools, visit.id, { state, note: given.text('note') });
      return `${PATH}?done=${state}`;
    },
    refused: (visit, error, given) => requestView(visit, given.text('note'), error),
  });
}

async function requestView(visit: Visit, note: string, error: RequestError | null): Promise<PageView> {
  const found = await keyRequestOf(visit.context, null, visit.id);
  const facts = detailList([
    ['Tenant', found.businessName],
    ['WABA', html`<a href="/portal/w/${found.wabaId}/keys">${found.wabaId}</a>`],
    ...requestFacts(found, visit.now),
  ]);
  const url = workflowUrl(visit.context.config.temporal, keyRequestWorkflowId(found.id));
  return {
    title: `Request ${found.id}`,
    trail: [{ label: TITLE, href: PATH }],
    actions: html`<a class="button" href="${url}" rel="noreferrer">Workflow in the Temporal UI</a>`,
    notice: error === null || error.param === 'note' ? null : { kind: 'error', text: error.message },
    body: html`<div class="card">${facts}</div>${decisionForm(visit.viewer, found, note, error)}`,
    error,
  };
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
