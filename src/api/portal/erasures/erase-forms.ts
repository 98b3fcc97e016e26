import { readCustomerReference } from '../../../features/customers/customer-reference.ts';
import {
  type ErasureView,
  eraseConversation,
  eraseCustomer,
  eraseTenant,
  eraseUser,
  eraseWaba,
} from '../../../ops/erasures/erasures.ts';
import { exportCustomer } from '../../../ops/erasures/export-customer.ts';
import { invalidValue } from '../../../platform/request-input.ts';
import { sendExport } from '../../erasures/send-export.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { type Form, formCard, formPage } from '../kits/form-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

const PATH = '/portal/w/:wabaId/erasures';
const OPERATOR_PATH = '/portal/operator/erasures';
const CONFIRMATION = 'erase';
const WHOM = { label: 'Phone number or user id of the customer', maxLength: 256 };

const PLACE = {
  access: PAGES.admin,
  active: 'erasures',
  trail: (visit: Visit) => [{ label: 'Erasures', href: visit.at(PATH) }],
};

/** The form that exports a customer; a form, so that no number stands in an address. */
function exportForm(app: PortalApp, context: PortalContext): Form<'exported', null> {
  return formPage(app, context, {
    ...PLACE,
    path: `${PATH}/export`,
    isPart: true,
    title: 'Export a customer',
    heading: 'Export',
    note: 'Everything that is stored of a customer, as one zip archive: messages, payments and files.',
    fields: [{ ...WHOM, name: 'exported', required: true }],
    button: 'Download the archive',
    look: 'plain',
    fieldOf: () => 'exported',
    submit: async ({ request, reply, waba, tools }, given) => {
      const customer = readCustomerReference(given.text('exported'), 'exported');
      const withStore = { ...tools, objectStore: context.exportStore };
      return await sendExport({ request, reply, exports: context.exports }, waba, () =>
        exportCustomer(withStore, waba.wabaId, customer),
      );
    },
  });
}

/** /portal/w/:wabaId/erasures/new: whose data, with a word to type before it goes; and a form that exports it. */
export function eraseCustomerPages(app: PortalApp, context: PortalContext): void {
  const exporting = exportForm(app, context);
  formPage(app, context, {
    ...PLACE,
    path: `${PATH}/new`,
    action: PATH,
    title: 'Erase or export a customer',
    lead: 'For a customer who asks what is stored, or asks to be forgotten.',
    above: (_, visit) => formCard(visit, exporting, { subject: null }),
    heading: 'Erase',
    query: ['conversationId'],
    fields: [
      { ...WHOM, name: 'customer' },
      { name: 'conversationId', label: 'Or the id of one conversation', maxLength: 18 },
      confirmField(
        16,
        html`Type <code>${CONFIRMATION}</code>. Messages, files, events and deliveries are erased permanently; what your own systems have received stays there.`,
      ),
    ],
    values: (_, visit) => ({ conversationId: visit.query('conversationId').trim() }),
    button: 'Erase permanently',
    look: 'danger',
    fieldOf: ({ code, param }) => (code === 'unknown_customer' ? 'customer' : (param ?? 'conversationId')),
    submit: async (visit, given) => {
      const { tools, waba } = visit;
      const customer = given.text('customer').trim();
      const conversationId = given.text('conversationId').trim();
      if (given.text('confirm').trim() !== CONFIRMATION)
        throw invalidValue(`Type ${CONFIRMATION} to confirm.`, 'confirm');
      if ((customer === '') === (conversationId === ''))
        throw invalidValue('Enter either a customer or a conversation.', 'customer');
      const { erasureId } =
        conversationId === ''
          ? await eraseCustomer(tools, waba.wabaId, readCustomerReference(customer))
          : await eraseConversation(tools, waba.wabaId, conversationId);
      return `${visit.path}/${erasureId}`;
    },
  });
}

function confirmField(maxLength: number, hint: Child) {
  return {
    name: 'confirm',
    label: 'Confirmation',
    required: true,
    isTypedAgain: true,
    maxLength,
    hint,
  } as const;
}

const KINDS = [
  { value: 'waba', label: 'a WABA with its history' },
  { value: 'tenant', label: 'a tenant with its WABAs' },
  { value: 'user', label: 'a user of the portal' },
];

export function eraseAccountForm(app: PortalApp, context: PortalContext): (visit: Visit) => Child {
  const form = formPage(app, context, {
    path: OPERATOR_PATH,
    access: PAGES.operator,
    active: 'operator/erasures',
    isPart: true,
    title: 'Erase permanently',
    heading: 'Erase a WABA, a tenant or a user',
    trail: () => [{ label: 'Erasures', href: OPERATOR_PATH }],
    fields: [
      { name: 'kind', label: 'Erase', widget: 'list', options: KINDS },
      { name: 'id', label: 'Id', required: true, maxLength: 64 },
      confirmField(
        80,
        html`Type the kind and the id, such as <code>waba 900000000000101</code>. Backups and the audit log keep what they have; everything else is erased permanently.`,
      ),
    ],
    button: 'Erase permanently',
    look: 'danger',
    fieldOf: () => 'confirm',
    submit: async (visit, given) => {
      const [kind, id] = [given.text('kind').trim(), given.text('id').trim()];
      if (id === '' || given.text('confirm').trim() !== `${kind} ${id}`)
        throw invalidValue('Type the kind and the id, such as: waba 900000000000101');
      const { erasureId } = await eraseAccount(visit, kind, id);
      return `${OPERATOR_PATH}/${erasureId}`;
    },
  });
  return (visit) => formCard(visit, form, { subject: null });
}

async function eraseAccount({ tools, viewer }: Visit, kind: string, id: string): Promise<ErasureView> {
  if (kind === 'waba') return await eraseWaba(tools, id);
  if (kind === 'tenant') return await eraseTenant(tools, id);
  if (kind !== 'user') throw pageNotFound();
  return await eraseUser(tools, { actor: tools.actor, tenantId: null, userId: viewer.userId }, id);
}
