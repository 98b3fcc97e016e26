import { listPhoneNumbers } from '../../../features/accounts/accounts.ts';
import { findTemplate, listTemplates, type MessageTemplate } from '../../../features/accounts/templates.ts';
import { createBroadcast } from '../../../features/messages/broadcasts/broadcasts.ts';
import {
  componentsWith,
  templateText,
  templateVariables,
} from '../../../features/messages/broadcasts/template-variables.ts';
import { PAGES, withoutFreshProof } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { detailList } from '../components/table.ts';
import { shownText } from '../deliveries/shown-text.ts';
import { utcTime } from '../form-values.ts';
import { type FormPage, formPage } from '../kits/form-page.ts';
import { listPage } from '../kits/list-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import { hrefWith } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';

export const BROADCASTS = '/portal/w/:wabaId/broadcasts';
export const NEW_BROADCAST = `${BROADCASTS}/new`;
const TEMPLATE = `${NEW_BROADCAST}/template`;

type Subject = { template: MessageTemplate; numbers: { value: string; label: string }[] };

/** The two steps that make a draft: the template, then what is the same for all recipients. */
export function newBroadcastPages(app: PortalApp, context: PortalContext): void {
  const place = { access: PAGES.admin, active: 'broadcasts' };
  listPage<MessageTemplate>(app, context, {
    ...place,
    path: NEW_BROADCAST,
    title: 'New broadcast',
    trail: broadcastTrail,
    lead: 'Step 1 of 3: select the template. Nothing is sent before you start the broadcast.',
    columns: [
      { label: 'Template', cell: templateLink },
      { label: 'Language', kind: 'narrow', cell: ({ language }) => language },
      { label: 'Category', kind: 'narrow', cell: ({ category }) => category ?? 'unknown' },
      { label: 'Text', cell: (template) => templateWords(template) },
    ],
    pageSize: 50,
    find: async ({ waba }, { after, limit }) => {
      const page = { after: after ?? [], limit };
      return await listTemplates(context.database, waba.wabaId, { status: 'APPROVED' }, page);
    },
    positionOf: ({ name, language, templateId }) => [name, language, templateId],
    empty: {
      title: 'No approved templates known',
      text: 'Templates are copied within a day after the access token was saved.',
    },
  });
  formPage(app, context, { ...FORM, ...place, access: withoutFreshProof(PAGES.admin, 'it sends nothing') });
}

export function broadcastTrail(visit: Visit) {
  return [{ label: 'Broadcasts', href: visit.at(BROADCASTS) }];
}

function templateLink({ name, language }: MessageTemplate, visit: Visit): Markup {
  const href = hrefWith(visit.at(TEMPLATE), { template: name, language });
  return html`<a class="break" href="${href}">${name}</a>`;
}

const MAX_WORDS_BYTES = 2_000;

/** What customers read, with the variables as the template names them. */
export function templateWords(template: Pick<MessageTemplate, 'content'>): Child {
  const text = templateText(template);
  return text === null ? '–' : shownText(text, { maxHtmlBytes: MAX_WORDS_BYTES });
}

const FORM: Omit<
  FormPage<'name' | 'phoneNumberId' | 'sendAt' | 'values' | 'template' | 'language', Subject>,
  'access' | 'active'
> = {
  path: TEMPLATE,
  title: 'New broadcast',
  lead: 'Step 2 of 3: what is the same for all recipients. The next step adds them.',
  trail: (visit) => [...broadcastTrail(visit), { label: 'Templates', href: visit.at(NEW_BROADCAST) }],
  query: ['template', 'language'],
  instead: (visit) => (visit.query('template') === '' ? visit.at(NEW_BROADCAST) : null),
  load: subjectOf,
  above: ({ template }) =>
    html`<div class="card">${detailList([
      [
        'Template',
        html`<span class="break">${template.name}</span> <span class="faint">${template.language}</span>`,
      ],
      ['Text', html`<span class="break">${templateWords(template)}</span>`],
    ])}</div>`,
  fields: [
    { name: 'template', label: '', widget: 'hidden' },
    { name: 'language', label: '', widget: 'hidden' },
    {
      name: 'name',
      label: 'Name',
      required: true,
      maxLength: 200,
      hint: 'For you: customers do not see it.',
    },
    { name: 'phoneNumberId', label: 'Your number', widget: 'list', options: ({ numbers }) => numbers },
    {
      name: 'values',
      label: 'Values, one to a line',
      widget: 'lines',
      rows: 4,
      isShown: ({ template }) => templateVariables(template).length > 0,
      hint: ({ template }) => valuesHint(template),
    },
    {
      name: 'sendAt',
      label: 'Begin at (UTC)',
      type: 'datetime-local',
      hint: 'Empty: when you start it. Otherwise at least 30 seconds and at most 35 days ahead.',
    },
  ],
  values: ({ template: { name, language } }) => ({ template: name, language }),
  button: 'Create the draft',
  submit: async (visit, given, { template }) => {
    const components = componentsWith(templateVariables(template), valuesOf(given.text('values')));
    const content = {
      name: template.name,
      language: { code: template.language },
      ...(components.length > 0 && { components }),
    };
    const made = await createBroadcast(
      visit.tools,
      visit.waba.wabaId,
      {
        name: given.text('name'),
        phoneNumberId: given.text('phoneNumberId'),
        template: content,
        sendAt: utcTime(given.text('sendAt')),
      },
      { requestedBy: visit.viewer.email, limits: null },
    );
    return `${visit.at(BROADCASTS)}/${made.id}/recipients`;
  },
};

async function subjectOf(visit: Visit): Promise<Subject> {
  const { context, waba } = visit;
  const named = { name: visit.carried('template'), language: visit.carried('language') };
  const [template, numbers] = await Promise.all([
    findTemplate(context.database, waba.wabaId, named),
    listPhoneNumbers(context.database, waba.wabaId),
  ]);
  if (template === null) throw pageNotFound();
  const options = numbers.map(({ phoneNumberId, displayPhoneNumber, verifiedName }) => ({
    value: phoneNumberId,
    label: `${displayPhoneNumber} (${verifiedName})`,
  }));
  return { template, numbers: options };
}

function valuesHint(template: MessageTemplate): Markup {
  const variables = templateVariables(template);
  const own = variables.some(({ part }) => part === 'body');
  const lines = variables.map(({ label }, at) => html`<br>${at + 1}. ${label}`);
  return html`The template leaves open:${lines}${own && html`<br>Leave the lines of the body empty where each recipient has values of its own.`}`;
}

/** Lines at the end may be left out. */
function valuesOf(text: string): string[] {
  const lines = text.split(/\r\n|\r|\n/).map((line) => line.trim());
  while (lines.at(-1) === '') lines.pop();
  return lines;
}
