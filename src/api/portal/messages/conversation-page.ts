import { listGroupMembers } from '../../../features/customers/groups.ts';
import type { MessageOrigin } from '../../../features/messages/app-messages.ts';
import {
  type ConversationDetail,
  findConversation,
  MAX_COUNTED_MESSAGES,
} from '../../../features/messages/conversations/conversations.ts';
import {
  listAnnotations,
  type MessageAnnotation,
} from '../../../features/messages/conversations/message-annotations.ts';
import {
  type ConversationMessage,
  listConversationMessages,
} from '../../../features/messages/conversations/message-list.ts';
import { listParticipants } from '../../../features/messages/conversations/participants.ts';
import { findThread, type Thread } from '../../../features/messages/conversations/thread.ts';
import { type Members, membersOf } from '../../../platform/json/json-members.ts';
import { annotationMembers, editedContent, mediaAddress, mediaErrorOf } from '../../messages/message-json.ts';
import { PAGES } from '../access/page-access.ts';
import { pageNotFound } from '../access/page-error.ts';
import { badge } from '../components/badge.ts';
import { codeBlock, copyable } from '../components/copyable.ts';
import { detailList, emptyState } from '../components/table.ts';
import { exactTime } from '../components/time.ts';
import { OPT_OUT_WORDS, SAID_BY } from '../customers/opt-out-pages.ts';
import { prettyJson, shownText } from '../deliveries/shown-text.ts';
import { viewPage } from '../kits/view-page.ts';
import type { Visit } from '../kits/visit.ts';
import { html, type Markup, nothing } from '../markup.ts';
import { conversationsTrail, hrefWith } from '../navigation.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { windowText } from './conversation-window.ts';
import { groupMembers, groupRows, participantList, statusBadge } from './group-parts.ts';
import { readMessage, wordsOf } from './message-words.ts';

const PAGE_SIZE = 20;

const ROW_ID = /^\d{1,18}$/;

const LIST = '/portal/w/:wabaId/conversations';

/** GET /portal/w/:wabaId/conversations/:id: a thread, its newest part first to be seen. */
export function conversationPage(app: PortalApp, context: PortalContext): void {
  const { database, cursors } = context;
  const view = async (visit: Visit) => {
    const { wabaId } = visit.waba;
    const id = visit.param('id');
    const conversation = ROW_ID.test(id) ? await findConversation(database, wabaId, id) : null;
    if (conversation === null) throw pageNotFound();
    await visit.noteRead('conversation.read', `conversation ${id}`);
    const scope = [wabaId, 'portal-messages', id];
    const [afterId = null] = cursors.decode(scope, visit.query('cursor')) ?? [];
    const walk = { order: 'desc' as const, afterId, limit: PAGE_SIZE };
    const inGroup = conversation.groupId === null ? [] : await listGroupMembers(database, conversation.id);
    const thread = await findThread(database, wabaId, conversation.id);
    const page = await listConversationMessages(database, wabaId, id, walk);
    const messages = await messageViews(context, wabaId, page?.messages.toReversed() ?? []);
    const cursor = page?.hasMore && page.position !== null ? cursors.encode(scope, [page.position]) : null;
    const earlier = cursor === null ? null : hrefWith(visit.path, { cursor });
    const erase = `/portal/w/${wabaId}/erasures/new?conversationId=${conversation.id}`;
    return {
      title: nameOf(conversation),
      trail: conversationsTrail(visit),
      actions: visit.mayChange && visit.mayUse(erase) && html`<a class="button" href="${erase}">Erase</a>`,
      assets: ['conversations.css'],
      body: html`${about(conversation, thread, visit.now)}
${conversation.groupId !== null && groupMembers(inGroup)}
${earlier !== null && html`<p class="earlier"><a class="button" href="${earlier}">Earlier messages</a></p>`}
${messages.length === 0 ? emptyState('No messages', 'This part of the thread has no messages.') : html`<ol class="thread">${messages}</ol>`}
${afterId !== null && html`<p class="earlier"><a class="button" href="${visit.path}">Newest messages</a></p>`}`,
    };
  };
  const place = { path: `${LIST}/:id`, access: PAGES.member, active: 'conversations' };
  viewPage(app, context, { ...place, query: ['cursor'], view });
}

function nameOf({ groupId, groupSubject, name, username, waId }: ConversationDetail): string {
  return groupId !== null ? (groupSubject ?? 'Group') : (name ?? username ?? waId ?? 'Conversation');
}

function windowOf(
  { groupId, isWindowOpen, lastInboundAt, lastCallAt }: ConversationDetail,
  now: Date,
): Markup {
  const next = groupId === null ? 'the customer writes or calls again' : 'a member writes';
  const lastMs = Math.max(lastInboundAt?.getTime() ?? 0, lastCallAt?.getTime() ?? 0);
  return isWindowOpen && lastMs > 0
    ? html`${badge('good', 'Open')} ${windowText(new Date(lastMs), now)}: free-form messages can be sent`
    : html`${badge('off', 'Closed')} only templates can be sent until ${next}`;
}

function optOutRow({ optOutScope, optOutSource, optOutSince }: ConversationDetail) {
  if (optOutScope === null || optOutSource === null) return [];
  const said = html`${badge('off', 'Opted out')} wants no ${OPT_OUT_WORDS[optOutScope]} since ${exactTime(optOutSince)}, said by ${SAID_BY[optOutSource]}`;
  return [['Opt-out', said] as const];
}

const OWNERS = { us: 'You', other: 'Another responder', unknown: 'Not known' } as const;

/** Of a number that several responders share. */
function threadRow(thread: Thread | null) {
  if (thread === null) return [];
  const { owner, role, since } = thread;
  const words = html`${OWNERS[owner]}${role !== null && html` (${role.replaceAll('_', ' ')})`} since ${exactTime(since)}`;
  return [['Who has it', words] as const];
}

function about(conversation: ConversationDetail, thread: Thread | null, now: Date): Markup {
  const { waId, userId, groupId, displayPhoneNumber, verifiedName, lastCallAt } = conversation;
  const { inboundCount, outboundCount } = conversation;
  const isCountedInPart = inboundCount + outboundCount >= MAX_COUNTED_MESSAGES;
  const counted = isCountedInPart ? ` of the newest ${MAX_COUNTED_MESSAGES.toLocaleString('en-US')}` : '';
  return detailList([
    ...(groupId === null
      ? [['Customer', copyable(waId ?? userId ?? 'unknown')] as const]
      : groupRows(conversation, groupId)),
    ...optOutRow(conversation),
    ...threadRow(thread),
    ['Your number', html`${verifiedName} <span class="faint">${displayPhoneNumber}</span>`],
    ['Service window', windowOf(conversation, now)],
    [
      groupId === null ? 'Last message of the customer' : 'Last message from the group',
      exactTime(conversation.lastInboundAt, 'no recent message'),
    ],
    ...(lastCallAt === null ? [] : [['Last call of the customer', exactTime(lastCallAt)] as const]),
    ['Messages', `${inboundCount} in, ${outboundCount} out${counted}`],
  ]);
}

/** Of each message, so that a page of them stays small. */
const MAX_WORDS_BYTES = 1_800;

/** What a message says in words, without its file; null where only its JSON tells. */
function messageWords(type: string, message: Members): Markup | null {
  const content = membersOf(message[type]);
  const words = wordsOf(type, content);
  return words === ''
    ? null
    : html`<p class="words">${shownText(words, { maxHtmlBytes: MAX_WORDS_BYTES })}</p>`;
}

/** The messages of a thread with what later ones made of them, in the order given. */
async function messageViews(
  { database, mediaUrls }: PortalContext,
  wabaId: string,
  messages: readonly ConversationMessage[],
): Promise<Markup[]> {
  const [annotations, linkTo, participants] = await Promise.all([
    listAnnotations(database, wabaId, messages),
    mediaUrls.linksOf(wabaId),
    listParticipants(database, messages),
  ]);
  const byTarget = Map.groupBy(annotations, ({ phoneNumberId, targetId }) => `${phoneNumberId} ${targetId}`);
  const shown = new Set(messages.map(({ id }) => id));
  return messages.map((message) => {
    const about = byTarget.get(`${message.phoneNumberId} ${message.upstreamId}`) ?? [];
    const { mediaPath } = mediaAddress(message, linkTo);
    const ofGroup = participantList(participants.get(message.id));
    return messageView(message, about, { shown, mediaPath, ofGroup });
  });
}

const ORIGINS: Readonly<Record<MessageOrigin, string>> = {
  business_app: ', written in the WhatsApp Business app',
  other_responder: ', a copy: another responder has it',
  history: ', from the history of the WhatsApp Business app',
};

function messageView(
  message: ConversationMessage,
  annotations: readonly MessageAnnotation[],
  { shown, mediaPath, ofGroup }: { shown: ReadonlySet<string>; mediaPath: string | null; ofGroup: Markup },
): Markup {
  const { reactions, editedAt, revokedAt } = annotationMembers(annotations);
  const edited = editedContent(annotations);
  const object = readMessage(message.content);
  const side = message.direction === 'inbound' ? 'customer' : 'business';
  return html`<li class="message ${side}" id="m${message.id}"><article>
<header><strong>${side === 'business' ? 'Business' : (message.groupSender ?? 'Customer')}</strong> <span class="faint">${message.type.replaceAll('_', ' ')}${message.origin !== null && ORIGINS[message.origin]}</span> ${exactTime(message.sentAt ?? message.createdAt)}</header>
${quote(message, shown)}${revokedAt !== undefined && html`<p>${badge('off', `Deleted by the ${side}`)}</p>`}
${mediaOf(message, mediaPath)}${messageWords(message.type, edited === null ? object : readMessage(edited))}
${editedAt !== undefined && html`<p class="faint">Edited ${exactTime(new Date(editedAt))}</p>`}
${reactions.length > 0 && html`<p class="reactions">${reactions.map(({ emoji, from }) => html`<span title="${from}">${emoji}</span> `)}</p>`}
<footer>${stateBadge(message)}${ofGroup}<details><summary>Details</summary><p class="faint">Message <code>${message.id}</code>, upstream <code>${message.upstreamId ?? 'no id yet'}</code>${message.apiKeyId !== null && html`, sent with API key ${message.apiKeyId}`}</p>${codeBlock(shownJson(message.content), `Message ${message.id} as upstream has it`)}</details></footer>
</article></li>
`;
}

/** Of each message, so that a page of them stays small. */
const MAX_JSON_BYTES = 1_600;

function shownJson(json: string): string {
  return shownText(prettyJson(json.slice(0, MAX_JSON_BYTES)), {
    maxHtmlBytes: MAX_JSON_BYTES,
    isCutAlready: json.length > MAX_JSON_BYTES,
    sizeBytes: Buffer.byteLength(json),
  });
}

function quote({ contextId, repliedId }: ConversationMessage, shown: ReadonlySet<string>): Markup {
  if (contextId === null) return nothing;
  return repliedId === null || !shown.has(repliedId)
    ? html`<p class="quote faint">Replies to a message that is not on this page</p>`
    : html`<p class="quote"><a href="#m${repliedId}">Replies to an earlier message</a></p>`;
}

const SHOWN_AS_PICTURE = new Set(['image', 'sticker']);

/** A file of ours; one that is not there yet, or never will be, says so. */
function mediaOf(message: ConversationMessage, mediaPath: string | null): Markup {
  const { mediaState, mediaType, mimeType, fileName } = message;
  if (mediaState === null || mediaType === null) return nothing;
  if (mediaState === 'pending') return html`<p>${badge('waiting', 'Download pending')}</p>`;
  const { mediaError } = mediaErrorOf(message);
  if (mediaError !== undefined) return html`<p>${badge('bad', 'No file')} ${mediaError.message}</p>`;
  if (mediaPath === null) return nothing;
  const name = fileName ?? mediaType;
  if (SHOWN_AS_PICTURE.has(mediaType)) {
    return html`<p><a href="${mediaPath}"><img class="picture" src="${mediaPath}" alt="${name}" loading="lazy"></a></p>`;
  }
  const player =
    mediaType === 'audio' &&
    html`<audio controls preload="none" src="${mediaPath}" aria-label="${name}"></audio>`;
  return html`<p>${player}<a href="${mediaPath}">${name}</a> <span class="faint">${mimeType}</span></p>`;
}

function stateBadge({ direction, status, sendState, readAt, sendAt }: ConversationMessage): Markup {
  if (direction === 'inbound') return readAt === null ? nothing : badge('neutral', 'marked as read');
  const state = status ?? sendState ?? 'accepted';
  const leaves = state === 'scheduled' && html` <span class="faint">for</span> ${exactTime(sendAt)}`;
  return html`${statusBadge(state)}${leaves}`;
}
