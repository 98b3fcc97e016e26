import { Type } from 'typebox';
import { customerReferenceOf, NO_CUSTOMER } from '../../../features/customers/customer-reference.ts';
import {
  type ConversationPreview,
  previewConversations,
} from '../../../features/messages/conversations/conversation-previews.ts';
import {
  type ConversationRow,
  listConversations,
} from '../../../features/messages/conversations/conversations.ts';
import { membersOf } from '../../../platform/json/json-members.ts';
import { pageOf } from '../../external/page.ts';
import { PAGES, searchOf } from '../access/page-access.ts';
import { openSearch, sealSearch } from '../access/private-search.ts';
import type { Viewer } from '../access/viewer.ts';
import { badge } from '../components/badge.ts';
import { csrfField, textField } from '../components/form.ts';
import { pager } from '../components/pager.ts';
import { emptyState } from '../components/table.ts';
import { timeAgo } from '../components/time.ts';
import { OPT_OUTS } from '../customers/opt-out-pages.ts';
import { shownText } from '../deliveries/shown-text.ts';
import { action } from '../kits/action.ts';
import { type ListColumn, rowTable } from '../kits/list-page.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup } from '../markup.ts';
import { hrefWith } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { conversationPage } from './conversation-page.ts';
import { windowEnd, windowText } from './conversation-window.ts';
import { readMessage, wordsOf } from './message-words.ts';
import { SCHEDULED } from './scheduled-pages.ts';

export function conversationPages(app: PortalApp, context: PortalContext): void {
  conversationListPage(app, context);
  conversationSearch(app, context);
  conversationPage(app, context);
}

const PAGE_SIZE = 50;

const LIST = '/portal/w/:wabaId/conversations';

type Row = { conversation: ConversationRow; preview: ConversationPreview | undefined };

const COLUMNS: ListColumn<Row>[] = [
  { label: 'Customer', cell: customerCell },
  { label: 'Last message', cell: ({ preview }) => lastMessage(preview) },
  {
    label: 'Your number',
    kind: 'narrow',
    cell: ({ preview }) => preview?.displayPhoneNumber ?? html`<span class="faint">–</span>`,
  },
  { label: 'Service window', kind: 'narrow', cell: ({ preview }, { now }) => windowCell(preview, now) },
  {
    label: 'Last activity',
    kind: 'narrow',
    cell: ({ conversation }, { now }) => timeAgo(conversation.lastMessageAt, now),
  },
];

function customerCell({ conversation }: Row, { path }: Visit): Markup {
  const { id, groupId, groupSubject, name, username, waId, userId, optOutScope } = conversation;
  const shown = groupId !== null ? (groupSubject ?? 'Group') : (name ?? username ?? 'No name');
  return html`<a class="break" href="${path}/${id}">${shown}</a>${optOutScope !== null && html` ${badge('off', 'Opted out')}`}<br><code class="faint break">${groupId ?? waId ?? userId ?? '–'}</code>`;
}

const MAX_PREVIEW_CHARS = 90;

function lastMessage(preview: ConversationPreview | undefined): Markup | string {
  if (!preview?.type) return html`<span class="faint">–</span>`;
  const { type, content, direction } = preview;
  const words = content === null ? '' : wordsOf(type, membersOf(readMessage(content)[type]));
  const text = shownText(words.replaceAll(/\s+/g, ' ')).slice(0, MAX_PREVIEW_CHARS).toWellFormed();
  const cut = words.length > MAX_PREVIEW_CHARS ? '…' : '';
  const kind = type === 'text' ? '' : type.replaceAll('_', ' ');
  const by = direction === 'outbound' ? 'You: ' : '';
  return html`<span class="break">${by !== '' && html`<span class="faint">${by}</span>`}${text}${cut}${kind !== '' && html` <span class="faint">${kind}</span>`}</span>`;
}

function windowCell(preview: ConversationPreview | undefined, now: Date): Markup {
  const { lastContactAt = null } = preview ?? {};
  if (lastContactAt === null || windowEnd(lastContactAt, now) === null) return badge('off', 'Closed');
  return html`${badge('good', 'Open')} ${windowText(lastContactAt, now)}`;
}

/** PostgreSQL stores no U+0000. */
const CUSTOMER = Type.String({ maxLength: 256, pattern: '^[^\\u0000]*$' });

/** Leads to an address without the phone number that was searched for. */
function conversationSearch(app: PortalApp, context: PortalContext): void {
  action(app, context, {
    path: `${LIST}/search`,
    access: searchOf(PAGES.member),
    fields: { customer: CUSTOMER },
    needsAll: true,
    act: async (visit, given) => {
      const wanted = given.text('customer').trim();
      const search = wanted === '' ? undefined : sealSearch(visit.request, wanted);
      return hrefWith(visit.at(LIST), { search });
    },
  });
}

function conversationListPage(app: PortalApp, context: PortalContext): void {
  const { database, cursors } = context;
  const view = async (visit: Visit) => {
    const { path } = visit;
    const { wabaId } = visit.waba;
    const search = visit.query('search');
    const wanted = search === '' ? '' : openSearch(visit.request, search);
    if (wanted === null) return path;
    const scope = [wabaId, 'portal-conversations', wanted];
    const [lastMessageAtText, id] = cursors.decode(scope, visit.query('cursor')) ?? [];
    const after = lastMessageAtText === undefined || id === undefined ? null : { lastMessageAtText, id };
    const customer = customerReferenceOf(wanted);
    const isNobody = customer === null && wanted !== '';
    const filter = { phoneNumberId: null, customer, since: null };
    const walk = { order: 'desc', after, limit: PAGE_SIZE + 1 } as const;
    const found = isNobody ? [] : await listConversations(database, wabaId, filter, walk);
    const action = wanted === '' ? 'conversations.listed' : 'conversations.searched';
    await visit.noteListRead(action, [wabaId]);
    const { rows, nextCursor } = pageOf(found, PAGE_SIZE, (row) =>
      cursors.encode(scope, [row.lastMessageAtText, row.id]),
    );
    const ids = rows.map(({ id }) => id);
    const previews = await previewConversations(database, wabaId, ids);
    const list = rows.map((conversation) => ({ conversation, preview: previews.get(conversation.id) }));
    const pages = pager({
      firstHref: after === null ? null : hrefWith(path, { search }),
      nextHref: nextCursor === null ? null : hrefWith(path, { search, cursor: nextCursor }),
    });
    return {
      title: 'Conversations',
      lead: 'Inbound and outbound messages, one thread per customer or group and number.',
      actions: html`<a class="button" href="${visit.at(SCHEDULED)}">Scheduled messages</a><a class="button" href="${visit.at(OPT_OUTS)}">Opt-outs</a>`,
      assets: ['conversations.css'],
      body: html`${searchForm(visit.viewer, path, wanted)}${list.length === 0 ? nobody(path, wanted) : rowTable(visit, { caption: 'Conversations', columns: COLUMNS }, list)}${pages}`,
    };
  };
  const place = { path: LIST, access: PAGES.member, active: 'conversations' };
  viewPage(app, context, { ...place, query: ['search', 'cursor'], view });
}

function searchForm(viewer: Viewer, path: string, wanted: string): Markup {
  const field = { label: 'Phone number or user id of the customer', name: 'customer', value: wanted };
  return html`<form class="filters" method="post" action="${path}/search" role="search" aria-label="Conversations">${csrfField(viewer)}${textField({ ...field, type: 'search', maxLength: 256 })}<button>Find</button></form>`;
}

function nobody(path: string, wanted: string): Markup {
  if (wanted === '') {
    return emptyState('No conversations yet', 'The first message from or to a customer starts one.');
  }
  const all = html`<a href="${path}">Show all conversations</a>`;
  if (customerReferenceOf(wanted) === null) return emptyState('Nothing to search for', NO_CUSTOMER, all);
  return emptyState('Nothing found', html`There is no conversation with <code>${wanted}</code>.`, all);
}
