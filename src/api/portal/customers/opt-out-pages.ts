import { listPhoneNumbers } from '../../../features/accounts/accounts.ts';
import {
  type CustomerReference,
  readCustomerReference,
} from '../../../features/customers/customer-reference.ts';
import {
  listOptOuts,
  OPT_OUT_SOURCES,
  type OptOutMark,
  type OptOutRow,
} from '../../../features/customers/opt-outs.ts';
import { endCustomerOptOuts, noteOptOut } from '../../../features/customers/tenant-opt-outs.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { detailList } from '../components/table.ts';
import { exactTime, timeAgo } from '../components/time.ts';
import { formPage } from '../kits/form-page.ts';
import { type ListColumn, listPage } from '../kits/list-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup } from '../markup.ts';
import { conversationsTrail } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

export const OPT_OUTS = '/portal/w/:wabaId/opt-outs';
export const WORDS = `${OPT_OUTS}/words`;

export const OPT_OUT_WORDS: Readonly<Record<OptOutMark['scope'], string>> = {
  marketing: 'marketing messages',
  all: 'messages',
};

export const SAID_BY: Readonly<Record<OptOutMark['source'], string>> = {
  upstream: 'the customer, in WhatsApp',
  error_131050: 'upstream, which refused a message',
  keyword: 'the customer, by a word',
  api: 'your API',
  portal: 'your team',
};

/** Customers who want no messages of some kind, and the forms that note and end it. */
export function optOutPages(app: PortalApp, context: PortalContext): void {
  listPage(app, context, {
    path: OPT_OUTS,
    access: PAGES.member,
    active: 'conversations',
    title: 'Opt-outs',
    trail: conversationsTrail,
    lead: 'Customers who want no marketing messages, or no messages at all. Heliograph refuses to send what they do not want.',
    done: { noted: 'The opt-out is noted.', ended: 'The opt-out has ended.', words: 'The words are saved.' },
    actions: (visit) =>
      visit.mayChange && visit.mayUse(WORDS) && html`<a class="button" href="${visit.at(WORDS)}">Words</a>`,
    add: { label: 'Note an opt-out', path: `${OPT_OUTS}/new` },
    filters: [
      {
        name: 'source',
        label: 'Said by',
        widget: 'list',
        options: async () => [
          { value: '', label: 'everyone' },
          ...OPT_OUT_SOURCES.map((value) => ({ value, label: SAID_BY[value] })),
        ],
      },
    ],
    columns: COLUMNS,
    pageSize: 50,
    find: async (visit, { filters, beforeId, limit }) => {
      const { wabaId } = visit.waba;
      await visit.noteListRead('opt_outs.listed', [wabaId]);
      const source = OPT_OUT_SOURCES.find((one) => one === filters.source) ?? null;
      const filter = { customer: null, phoneNumberId: null, source };
      return await listOptOuts(context.database, wabaId, filter, { beforeId, limit });
    },
    positionOf: ({ id }) => [id],
    empty: { title: 'No opt-outs', text: 'Customers who stop marketing messages in WhatsApp appear here.' },
  });
  noteForm(app, context);
  endForm(app, context);
}

export function optOutsTrail(visit: Visit) {
  return [...conversationsTrail(visit), { label: 'Opt-outs', href: visit.at(OPT_OUTS) }];
}

const COLUMNS: ListColumn<OptOutRow>[] = [
  { label: 'Customer', cell: customerCell },
  { label: 'Wants no', kind: 'narrow', cell: ({ scope }) => OPT_OUT_WORDS[scope] },
  { label: 'Your number', kind: 'narrow', cell: ({ phoneNumberId }) => phoneNumberId ?? 'all' },
  { label: 'Said by', cell: ({ source }) => SAID_BY[source] },
  { label: 'Since', kind: 'narrow', cell: ({ since }, { now }) => timeAgo(since, now) },
  { label: 'Reason', cell: ({ reason }) => html`<span class="break">${reason ?? ''}</span>` },
  {
    label: 'Change',
    kind: 'narrow',
    cell: (optOut, visit) =>
      visit.mayChange && isOwn(optOut) && html`<a href="${visit.path}/${optOut.id}/end">End</a>`,
  },
];

function customerCell({ name, username, waId, userId }: OptOutRow): Markup {
  return html`<span class="break">${name ?? username ?? 'No name'}</span><br><code class="faint break">${waId ?? userId ?? '–'}</code>`;
}

/** What upstream reported ends only when the customer resumes in WhatsApp. */
function isOwn({ source }: OptOutRow): boolean {
  return source !== 'upstream' && source !== 'error_131050';
}

function noteForm(app: PortalApp, context: PortalContext): void {
  formPage(app, context, {
    path: `${OPT_OUTS}/new`,
    access: PAGES.admin,
    active: 'conversations',
    title: 'Note an opt-out',
    lead: 'For a customer who asked your team for fewer messages. The customer need not have written yet.',
    trail: optOutsTrail,
    load: async ({ waba }) => await listPhoneNumbers(context.database, waba.wabaId),
    fields: [
      { name: 'customer', label: 'Phone number or user id of the customer', required: true, maxLength: 256 },
      {
        name: 'scope',
        label: 'The customer wants no',
        widget: 'list',
        options: Object.entries(OPT_OUT_WORDS).map(([value, label]) => ({ value, label })),
        hint: 'Without messages at all, you can only answer within the customer service window.',
      },
      {
        name: 'phoneNumberId',
        label: 'From',
        widget: 'list',
        options: (numbers) => [
          { value: '', label: 'all numbers' },
          ...numbers.map((one) => ({ value: one.phoneNumberId, label: one.displayPhoneNumber })),
        ],
      },
      {
        name: 'reason',
        label: 'Reason',
        maxLength: 500,
        hint: 'For people. It is erased with the customer.',
      },
    ],
    button: 'Note the opt-out',
    submit: async (visit, given) => {
      const { tools, waba } = visit;
      const customer = readCustomerReference(given.text('customer'));
      const [phoneNumberId, reason] = [given.text('phoneNumberId'), given.text('reason').trim()];
      await noteOptOut(tools, waba.wabaId, customer, {
        scope: given.text('scope') === 'all' ? 'all' : 'marketing',
        source: 'portal',
        ...(phoneNumberId !== '' && { phoneNumberId }),
        ...(reason !== '' && { reason }),
      });
      return `${visit.at(OPT_OUTS)}?done=noted`;
    },
  });
}

function endForm(app: PortalApp, context: PortalContext): void {
  formPage(app, context, {
    path: `${OPT_OUTS}/:id/end`,
    access: PAGES.admin,
    active: 'conversations',
    title: 'End an opt-out',
    lead: ({ phoneNumberId }) =>
      `Only when the customer has agreed to messages again. It ends ${phoneNumberId === null ? 'every opt-out of the customer that your team or your API noted' : 'at this number'}.`,
    trail: optOutsTrail,
    load: ownOptOut,
    above: (optOut) =>
      detailList([
        ['Customer', customerCell(optOut)],
        ['Wants no', OPT_OUT_WORDS[optOut.scope]],
        ['Said by', SAID_BY[optOut.source]],
        ['Since', exactTime(optOut.since)],
      ]),
    fields: [
      {
        name: 'evidence',
        label: 'How did the customer agree?',
        required: true,
        maxLength: 500,
        hint: 'Kept in the audit log. Leave personal data out, such as names and phone numbers.',
      },
    ],
    button: 'End the opt-out',
    look: 'danger',
    submit: async (visit, given, optOut) => {
      const { tools, waba } = visit;
      const { phoneNumberId } = optOut;
      const evidence = given.text('evidence').trim();
      await endCustomerOptOuts(tools, waba.wabaId, referenceOf(optOut), {
        phoneNumberId,
        evidence,
        source: 'portal',
      });
      return `${visit.at(OPT_OUTS)}?done=ended`;
    },
  });
}

async function ownOptOut({ context, waba, id }: Visit): Promise<OptOutRow> {
  const any = { customer: null, phoneNumberId: null, source: null };
  const [found] = await listOptOuts(
    context.database,
    waba.wabaId,
    { ...any, id },
    { beforeId: null, limit: 1 },
  );
  if (found === undefined || !isOwn(found)) throw pageNotFound();
  return found;
}

function referenceOf({ waId, userId }: OptOutRow): CustomerReference {
  if (waId !== null) return { phone: waId };
  if (userId === null) throw pageNotFound();
  return { userId };
}
