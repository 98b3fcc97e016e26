import { businessNames } from '../../../features/accounts/accounts.ts';
import {
  broughtWaba,
  listSetupLinks,
  SETUP_STATES,
  type SetupLink,
  type SetupState,
} from '../../../features/setup-links/setup-link-store.ts';
import { setUpWorkflowId } from '../../../features/setup-links/setup-task.ts';
import { isRowId, publicSetupId, setupRowOf } from '../../../platform/public-ids.ts';
import { PAGES } from '../access/page-access.ts';
import { badge, type Tone } from '../components/badge.ts';
import { columnTime } from '../components/time.ts';
import { workflowLink } from '../components/workflow-link.ts';
import { listPage } from '../kits/list-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html } from '../markup.ts';
import { hrefWith } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

const PATH = '/portal/operator/setup-links';

const STATES: Readonly<Record<SetupState, readonly [Tone, string]>> = {
  open: ['neutral', 'Open'],
  started: ['waiting', 'Started'],
  authorized: ['waiting', 'Authorized'],
  subscribed: ['waiting', 'Subscribed'],
  registered: ['waiting', 'Registered'],
  done: ['good', 'Done'],
  failed: ['bad', 'Failed'],
  cancelled: ['off', 'Cancelled'],
  expired: ['off', 'Expired'],
  revoked: ['off', 'Revoked'],
};

type Row = SetupLink & { businessName: string };

/** The links of all tenants by which customers connect numbers, each with how far it is and its workflow. */
export function setupLinkPages(app: PortalApp, context: PortalContext): void {
  listPage<Row>(app, context, {
    path: PATH,
    access: PAGES.operator,
    active: 'operator/tenants',
    title: 'Set-up links',
    trail: () => [{ label: 'Tenants', href: '/portal/operator/tenants' }],
    lead: 'By a set-up link, a customer connects a WhatsApp number. Links are made with the platform API.',
    filters: [
      { name: 'id', label: 'Link', maxLength: 30 },
      { name: 'tenant', label: 'userId', maxLength: 20 },
      { name: 'wabaId', label: 'WABA', maxLength: 64 },
      {
        name: 'state',
        label: 'State',
        widget: 'list',
        options: async () => [
          { value: '', label: 'Any' },
          ...SETUP_STATES.map((value) => ({ value, label: STATES[value][1] })),
        ],
      },
    ],
    pageSize: 50,
    columns: [
      { label: 'Link', kind: 'narrow', cell: ({ id }) => html`<code>${publicSetupId(id)}</code>` },
      {
        label: 'Tenant',
        cell: ({ tenantId, businessName }) =>
          html`<a href="/portal/operator/tenants/${tenantId}">${businessName}</a>`,
      },
      { label: 'State', cell: ({ state }) => badge(...STATES[state]) },
      { label: 'Step', cell: stepOf },
      { label: 'WABA', cell: wabaLink },
      { label: 'Workflow', cell: workflowOf },
      { label: 'Changed', kind: 'time', cell: ({ changedAt }) => columnTime(changedAt) },
    ],
    find: async ({ context: { database } }, { filters, beforeId, limit }) => {
      const which = whichOf(filters);
      if (which === null) return [];
      const links = await listSetupLinks(database, { ...which, beforeId, limit });
      const tenantIds = links.map(({ tenantId }) => tenantId);
      const names = await businessNames(database, tenantIds);
      return links.map((link) => ({ ...link, businessName: names.get(link.tenantId) ?? link.tenantId }));
    },
    positionOf: ({ id }) => [id],
    empty: { title: 'No set-up links', text: 'Links that have ended are kept for 30 days after their time.' },
  });
}

/** Where the page shows one link. */
export function setupLinkPath(given: { id?: string; tenant?: string; wabaId?: string }): string {
  return hrefWith(PATH, given);
}

/** Null: what was entered can be of no link. */
function whichOf({ id = '', tenant = '', wabaId = '', state = '' }: Readonly<Record<string, string>>) {
  const known = SETUP_STATES.find((one) => one === state) ?? null;
  const rowId = setupRowOf(id.trim());
  if ((tenant !== '' && !isRowId(tenant)) || (id !== '' && rowId === null)) return null;
  return {
    id: rowId,
    tenantId: tenant === '' ? null : tenant,
    wabaId: wabaId === '' ? null : wabaId,
    state: known,
  };
}

const NEXT: Partial<Record<SetupState, string>> = {
  started: 'login',
  authorized: 'waba',
  subscribed: 'register',
  registered: 'check',
};

/** At which step the link is, and why it does not go on. */
function stepOf({ state, failure, choice, tries }: SetupLink): Child {
  if (failure !== null) return html`${failure.step}: <code>${failure.code}</code>`;
  if (choice !== null) return html`the customer chooses a ${choice.of}`;
  const step = NEXT[state];
  if (step === undefined) return '–';
  return tries === 0 ? step : html`${step}, after ${tries} tries`;
}

function wabaLink(link: SetupLink): Child {
  const wabaId = broughtWaba(link);
  if (wabaId === null) return '–';
  return html`<a href="/portal/operator/wabas/${wabaId}"><code>${wabaId}</code></a>`;
}

/** Upstream's consent starts it. */
function workflowOf({ id, authorizedAt }: SetupLink, visit: Visit): Child {
  return authorizedAt === null ? '–' : workflowLink(visit, setUpWorkflowId(id));
}
