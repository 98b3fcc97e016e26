import { Type } from 'typebox';
import { listConversations, readCustomerReference } from '../../../messages/conversations/conversations.ts';
import { pageOf } from '../../external/page.ts';
import { PAGES, searchOf } from '../access/page-access.ts';
import { openSearch, sealSearch } from '../access/private-search.ts';
import { sendPage } from '../access/send-page.ts';
import { type Viewer, viewerOf, wabaOf } from '../access/viewer.ts';
import { csrfField, textField } from '../components/form.ts';
import { pager } from '../components/pager.ts';
import { dataTable, emptyState } from '../components/table.ts';
import { timeAgo } from '../components/time.ts';
import { Visit } from '../kits/visit.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { conversationPage } from './conversation-page.ts';

export function conversationPages(app: PortalApp, context: PortalContext): void {
  conversationListPage(app, context);
  conversationSearch(app);
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
  search: Type.Optional(Type.String({ maxLength: 2_048 })),
  cursor: Type.Optional(Type.String({ maxLength: 2_048 })),
});

const SearchForm = Type.Object({ customer: Type.String({ maxLength: 256, pattern: '^[^\\u0000]*$' }) });

/** POST /portal/w/:wabaId/conversations/search: leads to an address without the phone number that was searched for. */
function conversationSearch(app: PortalApp): void {
  const options = { config: searchOf(PAGES.member), schema: { body: SearchForm } };
  app.post('/portal/w/:wabaId/conversations/search', options, async (request, reply) => {
    const path = `/portal/w/${wabaOf(request).wabaId}/conversations`;
    const wanted = request.body.customer.trim();
    const search = wanted === '' ? '' : `?${new URLSearchParams({ search: sealSearch(request, wanted) })}`;
    return reply.redirect(`${path}${search}`, 303);
  });
}

function conversationListPage(app: PortalApp, context: PortalContext): void {
  const { database, cursors, now } = context;
  const options = { config: PAGES.member, schema: { querystring: Query } };
  app.get('/portal/w/:wabaId/conversations', options, async (request, reply) => {
    const waba = wabaOf(request);
    const path = `/portal/w/${waba.wabaId}/conversations`;
    const { search = '' } = request.query;
    const wanted = search === '' ? '' : openSearch(request, search);
    if (wanted === null) return reply.redirect(path, 303);
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
    const action = wanted === '' ? 'conversations.listed' : 'conversations.searched';
    await new Visit(request, reply, context).noteListRead(action, [waba.wabaId]);
    const { rows, nextCursor } = pageOf(found, PAGE_SIZE, (row) =>
      cursors.encode(scope, [row.lastMessageAtText, row.id]),
    );
    const at = new Date(now());
    const list = rows.map((row) => [
      html`<a href="${path}/${row.id}">${row.groupId !== null ? (row.groupSubject ?? 'Group') : (row.name ?? row.username ?? 'No name')}</a>`,
      html`<code>${row.groupId ?? row.waId ?? row.userId ?? '–'}</code>`,
      html`<code>${row.phoneNumberId}</code>`,
      timeAgo(row.lastMessageAt, at),
    ]);
    const query = (cursor: string) =>
      `${path}?${new URLSearchParams({ ...(search !== '' && { search }), cursor })}`;
    const first = wanted === '' ? path : `${path}?${new URLSearchParams({ search })}`;
    return sendPage(reply, {
      title: 'Conversations',
      active: 'conversations',
      lead: 'Inbound and outbound messages, one thread per customer or group and number.',
      assets: ['conversations.css'],
      body: html`${searchForm(viewerOf(request), path, wanted)}${list.length === 0 ? nobody(path, wanted) : dataTable('Conversations', COLUMNS, list)}${pager({ firstHref: after === null ? null : first, nextHref: nextCursor === null ? null : query(nextCursor) })}`,
    });
  });
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
  return emptyState('Nothing found', html`There is no conversation with <code>${wanted}</code>.`, all);
}
