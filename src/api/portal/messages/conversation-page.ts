import { Type } from 'typebox';
import {
  type ConversationDetail,
  findConversation,
  MAX_COUNTED_MESSAGES,
} from '../../../messages/conversations/conversation-detail.ts';
import { listConversationMessages } from '../../../messages/conversations/conversation-messages.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { viewerOf } from '../access/viewer.ts';
import { wabaOf } from '../access/waba-of.ts';
import { badge } from '../components/badge.ts';
import { copyable } from '../components/copyable.ts';
import { emptyState } from '../components/empty-state.ts';
import { detailList } from '../components/table.ts';
import { exactTime } from '../components/time.ts';
import { html, type Markup } from '../markup.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { messageViews } from './message-view.ts';

const PAGE_SIZE = 20;

const ROW_ID = /^\d{1,18}$/;

const Query = Type.Object({ cursor: Type.Optional(Type.String({ maxLength: 2_048 })) });

/** GET /portal/w/:wabaId/conversations/:id: a thread, its newest part first to be seen. */
export function conversationPage(app: PortalApp, { database, cursors }: PortalContext): void {
  const params = Type.Object({ wabaId: Type.String(), id: Type.String() });
  const options = { config: PAGES.member, schema: { params, querystring: Query } };
  app.get('/portal/w/:wabaId/conversations/:id', options, async (request, reply) => {
    const waba = wabaOf(request);
    const { id } = request.params;
    const conversation = ROW_ID.test(id) ? await findConversation(database, waba.wabaId, id) : null;
    if (conversation === null) throw pageNotFound();
    const scope = [waba.wabaId, 'portal-messages', id];
    const [afterId = null] = cursors.decode(scope, request.query.cursor ?? '') ?? [];
    const walk = { order: 'desc' as const, afterId, limit: PAGE_SIZE };
    const page = await listConversationMessages(database, waba.wabaId, id, walk);
    const messages = await messageViews(database, waba.wabaId, page?.messages.toReversed() ?? []);
    const path = `/portal/w/${waba.wabaId}/conversations`;
    const cursor = page?.hasMore && page.position !== null ? cursors.encode(scope, [page.position]) : null;
    const earlier = cursor === null ? null : `${path}/${id}?${new URLSearchParams({ cursor })}`;
    return sendPage(reply, {
      title: nameOf(conversation),
      viewer: viewerOf(request),
      waba,
      active: 'conversations',
      trail: [{ label: 'Conversations', href: path }],
      assets: ['conversations.css'],
      body: html`${about(conversation)}
${earlier !== null && html`<p class="earlier"><a class="button" href="${earlier}">Earlier messages</a></p>`}
${messages.length === 0 ? emptyState('No message', 'This part of the thread has no messages.') : html`<ol class="thread">${messages}</ol>`}
${afterId !== null && html`<p class="earlier"><a class="button" href="${path}/${id}">Newest messages</a></p>`}`,
    });
  });
}

function nameOf({ groupId, name, username, waId }: ConversationDetail): string {
  return groupId !== null ? 'Group' : (name ?? username ?? waId ?? 'Conversation');
}

function windowOf({ groupId, isWindowOpen }: ConversationDetail): Markup {
  if (groupId !== null)
    return html`${badge('off', 'None')} groups have no window, and sending to them is not supported yet`;
  return isWindowOpen
    ? html`${badge('good', 'Open')} free-form messages can be sent until 24 hours after the customer's last one`
    : html`${badge('off', 'Closed')} only templates can be sent until the customer writes again`;
}

function about(conversation: ConversationDetail): Markup {
  const { waId, userId, groupId, displayPhoneNumber, verifiedName, inboundCount, outboundCount } =
    conversation;
  const isCountedInPart = inboundCount + outboundCount >= MAX_COUNTED_MESSAGES;
  const counted = isCountedInPart ? ` of the newest ${MAX_COUNTED_MESSAGES.toLocaleString('en-US')}` : '';
  return detailList([
    groupId === null ? ['Customer', copyable(waId ?? userId ?? 'unknown')] : ['Group', copyable(groupId)],
    ['Your number', html`${verifiedName} <span class="faint">${displayPhoneNumber}</span>`],
    ['Service window', windowOf(conversation)],
    [
      groupId === null ? 'Last message of the customer' : 'Last message from the group',
      exactTime(conversation.lastInboundAt, 'no recent message'),
    ],
    ['Messages', `${inboundCount} in, ${outboundCount} out${counted}`],
  ]);
}
