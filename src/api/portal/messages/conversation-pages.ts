import { Type } from 'typebox';
import { listConversations, readCustomerReference } from '../../../messages/conversations/conversations.ts';
import { pageOf } from '../../external/page.ts';
import { PAGES } from '../access/page-access.ts';
import { sendPage } from '../access/send-page.ts';
import { wabaOf } from '../access/viewer.ts';
import { textField } from '../components/form.ts';
import { pager } from '../components/pager.ts';
import { dataTable, emptyState } from '../components/table.ts';
import { timeAgo } from '../components/time.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { conversationPage } from './conversation-page.ts';

/** The threads of a WABA. */
export function conversationPages(app: PortalApp, context: PortalContext): void {
  conversationListPage(app, context);
  conversationPage(app, context);
}

const PAGE_SIZE = 50;

const COLUMNS = [
  'Customer',
  { label: 'Phone or id', kind: 'narrow' },
  { label: 'Your number', kind: 'narrow' },
  { label: 'Last activity', kind: 'narrow' },
] as const;

const Query = Type.Object({
  customer: Type.Optional(Type.String({ maxLength: 256, pattern: '^[^\\u0000]*$' })),
  cursor: Type.Optional(Type.String({ maxLength: 2_048 })),
});

/** GET /portal/w/:wabaId/conversations: the latest first. */
function conversationListPage(app: PortalApp, { database, cursors, now }: PortalContext): void {
  const options = { config: PAGES.member, schema: { querystring: Query } };
  app.get('/portal/w/:wabaId/conversations', options, async (request, reply) => {
    const waba = wabaOf(request);
    const path = `/portal/w/${waba.wabaId}/conversations`;
    const wanted = request.query.customer?.trim() ?? '';
    const scope = [waba.wabaId, 'portal-conversations', wanted];
    const [lastMessageAtText, id] = cursors.decode(scope, request.query.cursor ?? '') ?? [];
    const after = lastMessageAtText === undefined || id === undefined ? null : { lastMessageAtText, id };
    const customer = wanted === '' ? null : readCustomerReference(wanted);
    const found = await listConversations(
      database,
      waba.wabaId,
      { phoneNumberId: null, customer, since: null },
      { order: 'desc', after, limit: PAGE_SIZE + 1 },
    );
    const { rows, nextCursor } = pageOf(found, PAGE_SIZE, (row) =>
      cursors.encode(scope, [row.lastMessageAtText, row.id]),
    );
    const at = new Date(now());
    const list = rows.map((row) => [
      html`<a href="${path}/${row.id}">${row.groupId !== null ? 'Group' : (row.name ?? row.username ?? 'No name')}</a>`,
      html`<code>${row.groupId ?? row.waId ?? row.userId ?? '–'}</code>`,
      html`<code>${row.phoneNumberId}</code>`,
      timeAgo(row.lastMessageAt, at),
    ]);
    const query = (cursor: string) => `${path}?${new URLSearchParams({ customer: wanted, cursor })}`;
    const first = wanted === '' ? path : `${path}?${new URLSearchParams({ customer: wanted })}`;
    return sendPage(reply, {
      title: 'Conversations',
      active: 'conversations',
      lead: 'Inbound and outbound messages, one thread per customer or group and number.',
      assets: ['conversations.css'],
      body: html`${search(path, wanted)}${list.length === 0 ? nobody(path, wanted) : dataTable('Conversations', COLUMNS, list)}${pager({ firstHref: after === null ? null : first, nextHref: nextCursor === null ? null : query(nextCursor) })}`,
    });
  });
}

function search(path: string, wanted: string): Markup {
  const field = { label: 'Phone number or user id of the customer', name: 'customer', value: wanted };
  return html`<form class="filters" method="get" action="${path}">${textField({ ...field, type: 'search', maxLength: 256 })}<button>Find</button></form>`;
}

function nobody(path: string, wanted: string): Markup {
  if (wanted === '') {
    return emptyState('No conversations yet', 'The first message from or to a customer starts one.');
  }
  const all = html`<a href="${path}">Show all conversations</a>`;
  return emptyState('Nothing found', html`There is no conversation with <code>${wanted}</code>.`, all);
}
