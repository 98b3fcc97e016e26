import {
  cancelScheduled,
  findScheduled,
  listScheduled,
  moveScheduled,
  type ScheduledMessage,
} from '../../../features/messages/send/scheduled-messages.ts';
import { membersOf } from '../../../platform/json/json-members.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { detailList } from '../components/table.ts';
import { exactTime, timeAgo } from '../components/time.ts';
import { shownText } from '../deliveries/shown-text.ts';
import { utcTime } from '../form-values.ts';
import { confirmationPage } from '../kits/confirmation-page.ts';
import { formPage } from '../kits/form-page.ts';
import { type ListColumn, listPage } from '../kits/list-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup } from '../markup.ts';
import { conversationsTrail } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { readMessage, wordsOf } from './message-words.ts';

export const SCHEDULED = '/portal/w/:wabaId/scheduled';

const PLACE = { access: PAGES.admin, active: 'conversations' };

/** Messages that are sent later, and the pages that move and cancel one. */
export function scheduledPages(app: PortalApp, context: PortalContext): void {
  listPage(app, context, {
    ...PLACE,
    access: PAGES.member,
    path: SCHEDULED,
    title: 'Scheduled messages',
    trail: conversationsTrail,
    lead: 'Messages that your API has given a time to. They leave at that time; the next one comes first.',
    done: { moved: 'The message has a new time.', cancelled: 'The message is cancelled.' },
    columns: COLUMNS,
    pageSize: 50,
    positionOf: ({ sendAt, id }) => [sendAt.toISOString(), id],
    find: async (visit, { after, limit }) => {
      const { wabaId } = visit.waba;
      await visit.noteListRead('scheduled_messages.listed', [wabaId]);
      return await listScheduled(
        context.database,
        wabaId,
        { phoneNumberId: null },
        { after: after ?? [], limit },
      );
    },
    empty: {
      title: 'No scheduled messages',
      text: 'A message that is sent with a time appears here until it leaves.',
    },
  });
  moveForm(app, context);
  confirmationPage(app, context, {
    ...PLACE,
    path: `${SCHEDULED}/:id/cancel`,
    load: scheduledOf,
    title: () => 'Cancel this message?',
    trail: scheduledTrail,
    body: (message) =>
      html`${about(message)}<p>It is not sent. It stays in its conversation as cancelled.</p>`,
    button: 'Cancel the message',
    act: async (visit) => {
      const cancelled = await cancelScheduled(visit.tools, visit.waba.wabaId, visit.id);
      if (cancelled === null) throw pageNotFound();
      return `${visit.at(SCHEDULED)}?done=cancelled`;
    },
  });
}

function moveForm(app: PortalApp, context: PortalContext): void {
  formPage(app, context, {
    ...PLACE,
    path: `${SCHEDULED}/:id/move`,
    title: 'Move a scheduled message',
    trail: scheduledTrail,
    load: scheduledOf,
    above: about,
    fields: [
      {
        name: 'sendAt',
        label: 'Send at (UTC)',
        type: 'datetime-local',
        required: true,
        hint: 'At least 30 seconds and at most 35 days ahead.',
      },
    ],
    values: ({ sendAt }) => ({ sendAt: sendAt.toISOString().slice(0, 16) }),
    button: 'Move the message',
    submit: async (visit, given) => {
      const { tools, waba } = visit;
      const sendAt = utcTime(given.text('sendAt')) ?? '';
      const moved = await moveScheduled(tools, waba.wabaId, visit.id, { sendAt });
      if (moved === null) throw pageNotFound();
      return `${visit.at(SCHEDULED)}?done=moved`;
    },
  });
}

function scheduledTrail(visit: Visit) {
  return [...conversationsTrail(visit), { label: 'Scheduled messages', href: visit.at(SCHEDULED) }];
}

const COLUMNS: ListColumn<ScheduledMessage>[] = [
  {
    label: 'Leaves',
    kind: 'narrow',
    cell: ({ sendAt }, { now }) => html`${exactTime(sendAt)}<br>${timeAgo(sendAt, now)}`,
  },
  {
    label: 'To',
    cell: ({ recipient, conversationId }, visit) =>
      html`<a class="break" href="${visit.at('/portal/w/:wabaId/conversations')}/${conversationId}"><code>${recipient}</code></a>`,
  },
  { label: 'Message', cell: wordsCell },
  { label: 'Your number', kind: 'narrow', cell: ({ phoneNumberId }) => phoneNumberId },
  {
    label: 'Change',
    kind: 'narrow',
    cell: ({ id }, visit) =>
      visit.mayChange &&
      visit.mayUse(`${visit.path}/${id}/cancel`) &&
      html`<a href="${visit.path}/${id}/move">Move</a> <a href="${visit.path}/${id}/cancel">Cancel</a>`,
  },
];

const MAX_WORDS_BYTES = 400;

function wordsCell({ type, content }: ScheduledMessage): Markup {
  const words = wordsOf(type, membersOf(readMessage(content)[type])).replaceAll(/\s+/g, ' ');
  return html`<span class="break">${shownText(words, { maxHtmlBytes: MAX_WORDS_BYTES })}</span> <span class="faint">${type.replaceAll('_', ' ')}</span>`;
}

function about(message: ScheduledMessage): Markup {
  return detailList([
    ['To', html`<code class="break">${message.recipient}</code>`],
    ['Message', wordsCell(message)],
    ['Leaves', exactTime(message.sendAt)],
    ['Not after', exactTime(message.notAfter, 'as long as any message is retried')],
  ]);
}

async function scheduledOf({ context, waba, id }: Visit): Promise<ScheduledMessage> {
  const found = await findScheduled(context.database, waba.wabaId, id);
  if (found === null) throw pageNotFound();
  return found;
}
