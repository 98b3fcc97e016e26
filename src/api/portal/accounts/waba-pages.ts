import { listPhoneNumbers } from '../../../features/accounts/accounts.ts';
import { removeNumber } from '../../../features/accounts/remove-number.ts';
import { limitWebhookTargets, webhookTargets } from '../../../features/endpoints/webhook-targets.ts';
import { removeWaba } from '../../../ops/erasures/account-removal.ts';
import { checkWaba, type WabaFinding } from '../../../ops/health/waba-check.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { postForm } from '../components/form.ts';
import { dataTable, emptyState } from '../components/table.ts';
import { formLine, linesOf } from '../form-values.ts';
import { action } from '../kits/action.ts';
import { formAction, formCard, formPage, type Refused } from '../kits/form-page.ts';
import { type ListColumn, rowTable } from '../kits/list-page.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { SIGNS } from './finding-signs.ts';
import { NUMBERS_DONE, numberActions, numberCards } from './number-forms.ts';
import { removal } from './removal-form.ts';
import { setupLinkPath } from './setup-link-pages.ts';
import { TOKEN_FORM, TOKEN_SAVED } from './waba-forms.ts';
import { setUpView, wabaSetUpPage } from './waba-set-up.ts';

const PATH = '/portal/operator/wabas/:wabaId';
const PLACE = { access: PAGES.operator, active: 'operator/tenants' };
const TENANTS = '/portal/operator/tenants';

const DONE = {
  ...NUMBERS_DONE,
  'number-removed': 'The number is removed; its history is kept.',
  saved: TOKEN_SAVED,
  targets: 'The targets are saved. They count from the next attempt on.',
};

export function wabaPages(app: PortalApp, context: PortalContext): void {
  const forms = wabaForms(app, context);
  const view = async (visit: Visit, refused: Refused | null = null) => await wabaView(visit, forms, refused);
  viewPage(app, context, { ...PLACE, path: PATH, view });
  wabaSetUpPage(app, context);
  formAction(app, context, {
    ...PLACE,
    form: TOKEN_FORM,
    show: async (visit, refused) =>
      refused.values.text('from') === 'set-up'
        ? await setUpView(visit.on(`${PATH}/set-up`), refused)
        : await view(visit.on(PATH), refused),
  });
  numberActions(app, context, PLACE.access);
  removeNumberAction(app, context);
}

type Forms = ReturnType<typeof wabaForms>;

function wabaTrail({ waba }: Visit) {
  return [
    { label: 'Tenants', href: TENANTS },
    { label: waba.businessName, href: `${TENANTS}/${waba.tenantId}` },
  ];
}

function wabaForms(app: PortalApp, context: PortalContext) {
  const part = {
    ...PLACE,
    isPart: true,
    load: async ({ waba }: Visit) => ({
      id: waba.wabaId,
      ...(await webhookTargets(context.database, waba.wabaId)),
    }),
    trail: (visit: Visit) => [
      ...wabaTrail(visit),
      { label: `WABA ${visit.waba.wabaId}`, href: visit.at(PATH) },
    ],
  };
  return {
    load: part.load,
    targets: formPage(app, context, {
      ...part,
      path: `${PATH}/targets`,
      title: 'Targets of webhooks and alerts',
      fields: [
        {
          name: 'allow',
          label: 'Only to',
          widget: 'lines',
          rows: 3,
          hint: 'One per line: host, *.domain, IP or CIDR, optionally with :port. Empty: anywhere that the installation allows.',
        },
        {
          name: 'deny',
          label: 'Not to',
          widget: 'lines',
          rows: 3,
          hint: 'As above; this list overrides the other.',
        },
      ],
      values: ({ allow, deny }) => ({ allow: allow.join('\n'), deny: deny.join('\n') }),
      button: 'Save the targets',
      look: 'plain',
      fieldOf: () => 'allow',
      submit: async (visit, given) => {
        const lists = { allow: linesOf(given.text('allow')), deny: linesOf(given.text('deny')) };
        await limitWebhookTargets(visit.tools, visit.waba.wabaId, lists);
        return `${visit.at(PATH)}?done=targets`;
      },
    }),
    removal: removal(app, context, {
      ...part,
      path: `${PATH}/remove`,
      title: 'Remove the WABA',
      remove: async ({ tools, waba }) => {
        await removeWaba(tools, waba.wabaId);
        return `${TENANTS}/${waba.tenantId}?done=waba-removed`;
      },
    }),
  };
}

type Number = Awaited<ReturnType<typeof listPhoneNumbers>>[number];

const NUMBER_COLUMNS: ListColumn<Number>[] = [
  { label: 'Number', cell: ({ displayPhoneNumber }) => displayPhoneNumber },
  { label: 'Verified name', cell: ({ verifiedName }) => verifiedName },
  { label: 'Id', kind: 'narrow', cell: ({ phoneNumberId }) => html`<code>${phoneNumberId}</code>` },
  { label: 'Quality', kind: 'narrow', cell: ({ qualityRating }) => qualityRating ?? '–' },
  {
    label: '',
    cell: ({ phoneNumberId }, { viewer, path }) =>
      postForm(
        viewer,
        `${path}/remove-number`,
        html`<input type="hidden" name="phoneNumberId" value="${phoneNumberId}"><button class="danger">Remove</button>`,
      ),
  },
];

async function wabaView(visit: Visit, forms: Forms, refused: Refused | null): Promise<PageView> {
  const { context, waba, path } = visit;
  const [numbers, findings, cards, subject] = await Promise.all([
    listPhoneNumbers(context.database, waba.wabaId),
    checkWaba(context, waba.wabaId),
    numberCards(visit),
    forms.load(visit),
  ]);
  const table =
    numbers.length === 0
      ? emptyState('No numbers yet', 'Numbers are copied from upstream with the access token.')
      : rowTable(visit, { caption: 'Phone numbers', columns: NUMBER_COLUMNS }, numbers);
  return {
    title: `WABA ${waba.wabaId}`,
    trail: wabaTrail(visit),
    actions: html`<a class="button" href="${path}/set-up">Guided set-up</a><a class="button" href="${setupLinkPath({ wabaId: waba.wabaId })}">Set-up links</a><a class="button" href="/portal/w/${waba.wabaId}">Open in the portal</a>`,
    done: DONE,
    body: html`<h2>Self-check</h2>${findingTable(Object.values(findings))}
<h2>Numbers</h2>${table}
${cards}
${formCard(visit, forms.targets, { subject })}
${formCard(visit, TOKEN_FORM, { subject: { from: 'waba' }, refused })}
${formCard(visit, forms.removal, { subject })}`,
  };
}

function findingTable(findings: readonly WabaFinding[]): Markup {
  return dataTable(
    'Self-check',
    [{ label: 'Status', kind: 'narrow' }, 'Check', 'Result'],
    findings.map(({ question, status, detail, todo }) => [
      SIGNS[status],
      question,
      html`${detail}${todo !== undefined && html`<br><span class="faint">${todo}</span>`}`,
    ]),
  );
}

function removeNumberAction(app: PortalApp, context: PortalContext): void {
  action(app, context, {
    path: `${PATH}/remove-number`,
    access: PLACE.access,
    fields: { phoneNumberId: formLine() },
    act: async (visit, given) => {
      await removeNumber(visit.tools, visit.waba.wabaId, given.text('phoneNumberId'));
      return `${visit.at(PATH)}?done=number-removed`;
    },
    refused: async () => {
      throw pageNotFound();
    },
  });
}
