import { addWaba } from '../../../features/accounts/wabas.ts';
import { callGraph } from '../../../ops/health/waba-check.ts';
import { checkAccessToken, checkUpstreamId, invalidValue } from '../../../platform/request-input.ts';
import { type Form, type FormPage, formPage } from '../kits/form-page.ts';
import type { Visit } from '../kits/visit.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

const TOKEN = {
  name: 'accessToken',
  label: 'Access token',
  type: 'password',
  required: true,
  maxLength: 4_096,
  // With room for what is pasted along with it; the check of the token says what is wrong.
  limit: 8_192,
  hint: 'Of a system user with whatsapp_business_messaging and whatsapp_business_management. It is checked against upstream at once, kept encrypted and never shown again.',
} as const;

type AddPage<Subject> = Pick<
  FormPage<'wabaId', Subject>,
  'path' | 'access' | 'active' | 'isPart' | 'load' | 'trail'
>;

/** Adds a WABA to the tenant of the path; its numbers come from upstream. */
export function addWabaPage<Subject>(
  app: PortalApp,
  context: PortalContext,
  page: AddPage<Subject>,
): Form<'wabaId' | 'accessToken', Subject> {
  return formPage(app, context, {
    ...page,
    title: 'Add a WABA',
    button: 'Check and add the WABA',
    fields: [
      {
        name: 'wabaId',
        label: 'WABA id',
        required: true,
        maxLength: 64,
        hint: 'Digits only, as WhatsApp Manager shows it.',
      },
      TOKEN,
    ],
    fieldOf: () => 'wabaId',
    submit: async (visit, given) => {
      const wabaId = given.text('wabaId').trim();
      await saveChecked(visit, { tenantId: visit.id, wabaId, accessToken: given.text('accessToken') });
      return `/portal/operator/wabas/${wabaId}/set-up?done=saved`;
    },
  });
}

export const TOKEN_SAVED = 'Upstream accepted the token; the WABA and its numbers are saved.';

const WABA_PATH = '/portal/operator/wabas/:wabaId';

/** Gives a WABA another token, and copies its numbers from upstream; `from` names the page that shows the result. */
export const TOKEN_FORM: Form<'from' | 'accessToken', { from: 'waba' | 'set-up' }> = {
  action: `${WABA_PATH}/access-token`,
  heading: 'Replace the access token',
  fields: [{ name: 'from', label: '', widget: 'hidden', mayBeMissing: true }, TOKEN],
  values: ({ from }) => ({ from }),
  button: 'Check and save the token',
  fieldOf: () => TOKEN.name,
  submit: async (visit, given) => {
    const { wabaId, tenantId } = visit.waba;
    await saveChecked(visit, { tenantId, wabaId, accessToken: given.text('accessToken') });
    return `${visit.at(WABA_PATH)}${given.text('from') === 'set-up' ? '/set-up' : ''}?done=saved`;
  },
};

/** Saves a WABA with what upstream says about it. Throws RequestError for what is wrong. */
async function saveChecked(
  { context, tools }: Visit,
  { tenantId, wabaId, accessToken }: { tenantId: string; wabaId: string; accessToken: string },
): Promise<void> {
  const token = checkAccessToken(accessToken);
  checkUpstreamId('The WABA id', wabaId);
  const numbers = await callGraph(context, token, (client, key) => client.listPhoneNumbers(wabaId, key));
  if (!numbers.ok) throw invalidValue(numbers.reason);
  await addWaba(tools, tenantId, { wabaId, phoneNumbers: numbers.value, accessToken: token });
}
