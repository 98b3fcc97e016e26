import { Type } from 'typebox';
import { type KeyRequest, keyRequestWorkflowId } from '../../../features/keys/key-request-store.ts';
import {
  decideKeyRequest,
  keyRequestOf,
  pastKeyRequests,
  waitingKeyRequests,
} from '../../../features/keys/key-requests.ts';
import { invalidValue, type RequestError } from '../../../platform/request-input.ts';
import { workflowUrl } from '../../../platform/temporal/client-connection.ts';
import { PAGES } from '../access/page-access.ts';
import type { Viewer } from '../access/viewer.ts';
import { postForm, textField } from '../components/form.ts';
import { detailList, emptyState } from '../components/table.ts';
import { type FormValues, formLine } from '../form-values.ts';
import { action } from '../kits/action.ts';
import { fieldMarkup } from '../kits/form-fields.ts';
import { type ListColumn, rowTable, showList } from '../kits/list-page.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { SEND_LIMIT_FIELDS, sendLimitsOfForm, sendLimitValues } from './key-form.ts';
import { requestColumns, requestFacts, sendLimits } from './key-tables.ts';

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
    cell: ({ scopes, validDays, ...limits }) =>
      html`${scopes.join(', ')}<br><span class="faint">${validDays === null ? 'until revoked' : `${validDays} days`}</span>${sendLimits(limits)}`,
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
    path: PATH,
    access: PAGES.operator,
    active: ACTIVE,
    query: ['cursor'],
    view: async (visit) => {
      const [waiting, all] = await Promise.all([
        waitingKeyRequests(context),
        showList(visit, {
          caption: 'Requests that were decided or have ended',
          columns: COLUMNS,
          pageSize: 25,
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

/** A row of the list approves what was asked for: it has no limits. */
const FIELDS = {
  decision: formLine(),
  note: formLine(),
  ...Object.fromEntries(SEND_LIMIT_FIELDS.map(({ name }) => [name, Type.Optional(formLine())])),
};

function approvalPage(app: PortalApp, context: PortalContext): void {
  const place = { path: `${PATH}/:id`, access: PAGES.operator, active: ACTIVE };
  viewPage(app, context, { ...place, view: (visit) => requestView(visit, null, null) });
  action(app, context, {
    ...place,
    fields: FIELDS,
    needsAll: true,
    act: async (visit, given) => {
      const decision = given.text('decision');
      if (decision !== 'approve' && decision !== 'deny') throw invalidValue('Choose to approve or to deny.');
      const state = decision === 'approve' ? 'approved' : 'denied';
      const limits = sendLimitsOfForm(given);
      await decideKeyRequest(visit.tools, visit.id, { state, note: given.text('note'), limits });
      return `${PATH}?done=${state}`;
    },
    refused: (visit, error, given) => requestView(visit, given, error),
  });
}

async function requestView(
  visit: Visit,
  given: FormValues | null,
  error: RequestError | null,
): Promise<PageView> {
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
    notice: error === null || isOfField(error) ? null : { kind: 'error', text: error.message },
    body: html`<div class="card">${facts}</div>${decisionForm(visit.viewer, found, given, error)}`,
    error,
  };
}

function isOfField({ param }: RequestError): boolean {
  return param === 'note' || SEND_LIMIT_FIELDS.some(({ name }) => name === param);
}

/** What the key may send, as it was asked for, to be changed. */
function limitFields(request: KeyRequest, given: FormValues | null, error: RequestError | null): Child[] {
  const asked = sendLimitValues(request);
  return SEND_LIMIT_FIELDS.map((field) => {
    const values = [given?.text(field.name) ?? asked[field.name]];
    return fieldMarkup(field, {
      subject: null,
      values,
      error: error?.param === field.name ? error.message : null,
    });
  });
}

function decisionForm(
  viewer: Viewer,
  request: KeyRequest,
  given: FormValues | null,
  error: RequestError | null,
): Markup | false {
  const { id, state } = request;
  if (state !== 'requested' && state !== 'approved') return false;
  const field = textField({
    label: 'Note',
    name: 'note',
    value: given?.text('note') ?? '',
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
    html`<button disabled hidden>Choose one below</button>${state === 'requested' && html`${limitFields(request, given, error)}`}${field}<div class="buttons">${state === 'requested' && approve}<button class="danger" name="decision" value="deny">${denyLabel}</button></div>`,
  );
}
