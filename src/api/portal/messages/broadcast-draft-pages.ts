import { findTemplate } from '../../../features/accounts/templates.ts';
import {
  type AddedFile,
  addRecipientFile,
} from '../../../features/messages/broadcasts/add-recipient-file.ts';
import type { BodyParameters } from '../../../features/messages/broadcasts/broadcast-message.ts';
import {
  nextPending,
  type PendingRecipient,
} from '../../../features/messages/broadcasts/broadcast-recipients.ts';
import {
  type BroadcastView,
  broadcastOf,
  changeBroadcast,
} from '../../../features/messages/broadcasts/broadcasts.ts';
import { alreadyStarted } from '../../../features/messages/broadcasts/switch-broadcast.ts';
import { namedTemplate } from '../../../features/messages/send/sent-template.ts';
import { invalidValue } from '../../../platform/request-input.ts';
import { mayUse } from '../access/link-access.ts';
import { PAGES, withoutFreshProof } from '../access/page-access.ts';
import type { Viewer } from '../access/viewer.ts';
import { dataTable, detailList } from '../components/table.ts';
import { exactTime } from '../components/time.ts';
import { shownText } from '../deliveries/shown-text.ts';
import { confirmationPage } from '../kits/confirmation-page.ts';
import { type Form, formCard, formPage } from '../kits/form-page.ts';
import type { Visit } from '../kits/visit.ts';
import { type Child, html, type Markup } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { number } from './broadcast-view.ts';
import { BROADCASTS, broadcastTrail, templateWords } from './new-broadcast-pages.ts';

export const BROADCAST = `${BROADCASTS}/:id`;
const RECIPIENTS = `${BROADCAST}/recipients`;
const START = `${BROADCAST}/start`;

/** Of a file of 10,000 lines, escaped as browsers send forms. */
const FILE_BYTES = 4 * 1024 * 1024;
const MAX_PROBLEMS_SHOWN = 100;
const MAX_LINE_BYTES = 200;
const REVIEWED = 10;

/** The ways on from a draft. */
export function draftLinks(viewer: Viewer, path: string, recipients: number): Markup | null {
  if (!mayUse(viewer.link, 'GET', `${path}/start`)) return null;
  return html`<a class="button" href="${path}/recipients">Add recipients</a>${reviewLink(path, recipients)}`;
}

function reviewLink(path: string, recipients: number): Markup | false {
  return recipients > 0 && html`<a class="button primary" href="${path}/start">Review and start</a>`;
}

type RecipientsForm = Form<'recipients', BroadcastView>;

/** Recipients come in, and are looked at before it starts. */
export function broadcastDraftPages(app: PortalApp, context: PortalContext): void {
  const place = { access: PAGES.admin, active: 'broadcasts' };
  const form: RecipientsForm = formPage(app, context, {
    ...place,
    access: withoutFreshProof(PAGES.admin, 'it sends nothing'),
    path: RECIPIENTS,
    title: 'Add recipients',
    lead: 'Step 3 of 3. You can add further ones until you start the broadcast.',
    trail: draftTrail,
    load: draftOf,
    bodyBytes: FILE_BYTES,
    fields: [
      {
        name: 'recipients',
        label: 'Recipients',
        widget: 'lines',
        rows: 12,
        limit: FILE_BYTES,
        maxLength: FILE_BYTES,
        hint: html`One phone number to a line, or a spreadsheet saved as CSV whose first line names its columns: <code>to</code>, <code>ref</code> (your own name
for the recipient), and the variables of the template’s body by their places (<code>1</code>, <code>2</code>, …) or names. Up to 10,000 lines at once.<br>
<label hidden data-file-into="recipients">Take them from a file: <input type="file" accept=".csv,.tsv,.txt,text/csv,text/plain"></label>`,
      },
    ],
    button: 'Add the recipients',
    submit: async (visit, given) => {
      const ids = { wabaId: visit.waba.wabaId, broadcastId: visit.id };
      const file = await addRecipientFile(visit.tools, ids, given.text('recipients'));
      return await addedView(visit, form, file);
    },
  });
  confirmationPage(app, context, {
    ...place,
    path: START,
    load: async (visit) => await reviewOf(visit, context),
    title: () => 'Start this broadcast?',
    trail: (visit, { broadcast }) => draftTrail(visit, broadcast),
    body: review,
    button: 'Start the broadcast',
    act: async (visit) => {
      const ids = { wabaId: visit.waba.wabaId, broadcastId: visit.id };
      await changeBroadcast(visit.tools, ids, 'start', null);
      return `${visit.at(BROADCAST)}?done=start`;
    },
  });
}

function draftTrail(visit: Visit, { name }: BroadcastView) {
  return [...broadcastTrail(visit), { label: name, href: visit.at(BROADCAST) }];
}

async function draftOf(visit: Visit): Promise<BroadcastView> {
  const broadcast = await broadcastOf(visit.context, visit.waba.wabaId, visit.id);
  if (broadcast.state !== 'draft') throw alreadyStarted();
  return broadcast;
}

/** What was not added stays in the form, to be corrected and sent again. */
async function addedView(
  visit: Visit,
  form: RecipientsForm,
  { added, duplicates, problems, head }: AddedFile,
): Promise<PageView> {
  const broadcast = await draftOf(visit);
  const { recipients } = broadcast;
  const counts = [
    `${number(added)} added`,
    ...(duplicates > 0 ? [`${number(duplicates)} were there already`] : []),
    ...(problems.length > 0 ? [`${number(problems.length)} not added`] : []),
  ];
  const text = `${counts.join(', ')}. The broadcast has ${number(recipients)} ${recipients === 1 ? 'recipient' : 'recipients'}.`;
  const left = [...(head === null ? [] : [head]), ...problems.map((one) => one.text)]
    .join('\n')
    .replaceAll('\0', '\ufffd');
  const error = invalidValue('These lines were not added: correct them and add them again.', 'recipients');
  const refused = problems.length > 0 ? { values: { text: () => left, list: () => [left] }, error } : null;
  return {
    title: 'Add recipients',
    trail: draftTrail(visit, broadcast),
    notice: { kind: problems.length > 0 ? 'warning' : 'done', text },
    actions: reviewLink(visit.at(BROADCAST), broadcast.recipients),
    body: html`${problems.length > 0 && problemTable(problems)}${formCard(visit, form, { subject: broadcast, refused })}`,
  };
}

function problemTable(problems: AddedFile['problems']): Markup {
  const shown = problems.slice(0, MAX_PROBLEMS_SHOWN);
  const rows = shown.map(({ line, text, message }): Child[] => [
    `Line ${number(line)}`,
    message,
    html`<code class="break">${shownText(text, { maxHtmlBytes: MAX_LINE_BYTES })}</code>`,
  ]);
  const more = problems.length - shown.length;
  const columns = [{ label: 'Where', kind: 'narrow' as const }, 'What is wrong', 'As written'];
  return html`${dataTable('Lines that were not added', columns, rows)}${more > 0 && html`<p class="lead">And ${number(more)} more.</p>`}`;
}

type Review = { broadcast: BroadcastView; first: PendingRecipient[]; words: Child };

async function reviewOf(visit: Visit, { database }: PortalContext): Promise<Review> {
  const broadcast = await draftOf(visit);
  const { wabaId } = visit.waba;
  await visit.noteListRead('broadcast_recipients.listed', [wabaId]);
  const named = namedTemplate(JSON.parse(broadcast.template));
  const [template, first] = await Promise.all([
    findTemplate(database, wabaId, named),
    nextPending(database, broadcast.id, REVIEWED),
  ]);
  const words = template === null ? '–' : templateWords(template);
  return { broadcast, first, words };
}

function review({ broadcast, first, words }: Review): Markup {
  const { name, language } = namedTemplate(JSON.parse(broadcast.template));
  const rows = first.map(({ recipient, ref, parameters }): Child[] => [
    html`<code class="break">${recipient}</code>`,
    ref === null ? '–' : html`<span class="break">${ref}</span>`,
    html`<span class="break">${variablesText(parameters)}</span>`,
  ]);
  return html`${detailList([
    ['Recipients', number(broadcast.recipients)],
    ['Template', html`<span class="break">${name}</span> <span class="faint">${language}</span>`],
    ['Text', html`<span class="break">${words}</span>`],
    ['Your number', broadcast.phoneNumberId],
    ['Begins', exactTime(broadcast.sendAt, 'at once')],
  ])}
<p>Each recipient gets one message. After the start nothing can be changed; you can pause the broadcast and cancel it.</p>
<h2>The first recipients</h2>${dataTable('The first recipients', ['To', 'Ref', 'Variables of the body'], rows)}`;
}

function variablesText(parameters: BodyParameters | null): string {
  if (parameters === null) return 'those of the broadcast';
  const named = Array.isArray(parameters)
    ? parameters.map((value: string, at): [string, string] => [String(at + 1), value])
    : Object.entries(parameters);
  return shownText(named.map(([name, value]) => `${name}: ${value}`).join('; '), { maxHtmlBytes: 500 });
}
