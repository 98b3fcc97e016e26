import {
  listMarketingRoutes,
  MARKETING_ROUTES,
  setMarketingRoute,
} from '../../../features/accounts/marketing-route.ts';
import { listNumberPaces, paceOfNumber, setNumberPace } from '../../../features/accounts/number-pace.ts';
import type { PAGES } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import type { FormField } from '../kits/form-fields.ts';
import { type Form, formAction, formCard } from '../kits/form-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

const PATH = '/portal/operator/wabas/:wabaId';

export const NUMBERS_DONE = {
  pace: 'The sending rate of the number is set.',
  'no-pace': 'Nothing was changed: the rate must be 1 to 1,000 messages per second, or empty.',
  marketing: 'The route of marketing templates is set.',
  'no-marketing': 'Nothing was changed: there is no such route.',
};

type Subject = Awaited<ReturnType<typeof loadNumbers>>;

async function loadNumbers({ context, waba }: Visit) {
  const [numbers, routes] = await Promise.all([
    listNumberPaces(context.database, waba.wabaId),
    listMarketingRoutes(context.database, waba.wabaId),
  ]);
  return { numbers, routes, setting: context.config.sending.messagesPerSecond };
}

type ListedNumber = Subject['numbers'][number];

/** The list from which the number of a form is chosen, each with what is set. */
function numberField(
  id: string,
  nowOf: (number: ListedNumber, subject: Subject) => string,
): FormField<'phoneNumberId', Subject> {
  return {
    name: 'phoneNumberId',
    id,
    label: 'Number',
    widget: 'list',
    options: (subject) =>
      subject.numbers.map((number) => ({
        value: number.phoneNumberId,
        label: `${number.displayPhoneNumber} (${number.phoneNumberId}): ${nowOf(number, subject)}`,
      })),
  };
}

/** How fast the messages of a number leave; empty goes back to the setting. */
const PACE: Form<'phoneNumberId' | 'messagesPerSecond', Subject> = {
  action: `${PATH}/pace`,
  heading: 'Sending rate',
  fields: [
    numberField(
      'pace-number',
      (known, { setting }) =>
        `${paceOfNumber(known, setting)}${known.messagesPerSecond === null ? ' (default)' : ''}`,
    ),
    {
      name: 'messagesPerSecond',
      label: 'Messages per second',
      maxLength: 6,
      hint: ({ setting }) =>
        `From 1 to 1,000. Empty: ${setting === null ? 'what upstream allows the number (20 when it is also used in the app, 80 for most, 1,000 for some)' : `the default of the installation, ${setting}`}.`,
    },
  ],
  button: 'Set the rate',
  look: 'plain',
  submit: async (visit, given) => {
    const rate = given.text('messagesPerSecond').trim();
    const messagesPerSecond = rate === '' ? null : /^\d{1,6}$/.test(rate) ? Number(rate) : Number.NaN;
    const change = { phoneNumberId: given.text('phoneNumberId').trim(), messagesPerSecond };
    await setNumberPace(visit.tools, visit.waba.wabaId, change);
    return `${visit.at(PATH)}?done=pace`;
  },
};

/** Which call of upstream the marketing templates of a number go to. */
const MARKETING: Form<'phoneNumberId' | 'route', Subject> = {
  action: `${PATH}/marketing`,
  heading: 'Marketing templates',
  fields: [
    numberField('marketing-number', ({ phoneNumberId }, { routes }) => routes.get(phoneNumberId) ?? 'auto'),
    {
      name: 'route',
      label: 'Route',
      widget: 'list',
      options: MARKETING_ROUTES.map((value) => ({ value, label: value })),
      hint: 'auto: marketing_messages, and messages where upstream refuses them there. always: marketing_messages only. never: messages only.',
    },
  ],
  button: 'Set the route',
  look: 'plain',
  submit: async (visit, given) => {
    const change = { phoneNumberId: given.text('phoneNumberId').trim(), route: given.text('route') };
    await setMarketingRoute(visit.tools, visit.waba.wabaId, change);
    return `${visit.at(PATH)}?done=marketing`;
  },
};

/** What operators set for a number. */
export function numberActions(
  app: PortalApp,
  context: PortalContext,
  access: (typeof PAGES)['operator'],
): void {
  for (const [name, form] of [
    ['pace', PACE],
    ['marketing', MARKETING],
  ] as const)
    formAction(app, context, {
      access,
      form,
      load: loadNumbers,
      show: async (visit, { error }) => {
        if (error.code === 'unknown_phone_number') throw pageNotFound();
        return `${visit.at(PATH)}?done=no-${name}`;
      },
    });
}

/** The forms, where the WABA has numbers. */
export async function numberCards(visit: Visit): Promise<Markup | false> {
  const subject = await loadNumbers(visit);
  return (
    subject.numbers.length > 0 &&
    html`${formCard(visit, PACE, { subject })}${formCard(visit, MARKETING, { subject })}`
  );
}
