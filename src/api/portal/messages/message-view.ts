import {
  listAnnotations,
  type MessageAnnotation,
} from '../../../messages/conversations/message-annotations.ts';
import type { ConversationMessage } from '../../../messages/conversations/message-columns.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { annotationMembers, editedContent } from '../../messages/annotation-members.ts';
import { mediaAddress, mediaErrorOf } from '../../messages/media-members.ts';
import { badge, type Tone } from '../components/badge.ts';
import { codeBlock } from '../components/copyable.ts';
import { exactTime } from '../components/time.ts';
import { prettyJson } from '../deliveries/pretty-json.ts';
import { shownText } from '../deliveries/shown-bytes.ts';
import { html, type Markup, nothing } from '../markup.ts';
import { messageWords, readMessage } from './message-words.ts';

/** The messages of a thread with what later ones made of them, in the order given. */
export async function messageViews(
  database: Database,
  wabaId: string,
  messages: readonly ConversationMessage[],
): Promise<Markup[]> {
  const annotations = await listAnnotations(database, wabaId, messages);
  const byTarget = Map.groupBy(annotations, ({ phoneNumberId, targetId }) => `${phoneNumberId} ${targetId}`);
  const shown = new Set(messages.map(({ id }) => id));
  return messages.map((message) => {
    const about = byTarget.get(`${message.phoneNumberId} ${message.upstreamId}`) ?? [];
    return messageView(message, about, shown);
  });
}

function messageView(
  message: ConversationMessage,
  annotations: readonly MessageAnnotation[],
  shown: ReadonlySet<string>,
): Markup {
  const { reactions, editedAt, revokedAt } = annotationMembers(annotations);
  const edited = editedContent(annotations);
  const object = readMessage(message.content);
  const side = message.direction === 'inbound' ? 'customer' : 'business';
  return html`<li class="message ${side}" id="m${message.id}"><article>
<header><strong>${side === 'business' ? 'Business' : (message.groupSender ?? 'Customer')}</strong> <span class="faint">${message.type.replaceAll('_', ' ')}</span> ${exactTime(message.sentAt ?? message.createdAt)}</header>
${quote(message, shown)}${revokedAt !== undefined && html`<p>${badge('off', 'Deleted by the customer')}</p>`}
${mediaOf(message)}${messageWords(message.type, edited === null ? object : readMessage(edited))}
${editedAt !== undefined && html`<p class="faint">Edited ${exactTime(new Date(editedAt))}</p>`}
${reactions.length > 0 && html`<p class="reactions">${reactions.map(({ emoji, from }) => html`<span title="${from}">${emoji}</span> `)}</p>`}
<footer>${stateBadge(message)}<details><summary>Details</summary><p class="faint">Message <code>${message.id}</code>, upstream <code>${message.upstreamId ?? 'no id yet'}</code></p>${codeBlock(shownJson(message.content), `Message ${message.id} as upstream has it`)}</details></footer>
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
function mediaOf(message: ConversationMessage): Markup {
  const { mediaState, mediaType, mimeType, fileName } = message;
  if (mediaState === null || mediaType === null) return nothing;
  if (mediaState === 'pending') return html`<p>${badge('waiting', 'Download pending')}</p>`;
  const { mediaError } = mediaErrorOf(message);
  if (mediaError !== undefined) return html`<p>${badge('bad', 'No file')} ${mediaError.message}</p>`;
  const { mediaPath } = mediaAddress(message, '');
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

const TONES: Readonly<Record<string, Tone>> = {
  failed: 'bad',
  read: 'good',
  played: 'good',
  delivered: 'good',
  sent: 'neutral',
};

function stateBadge({ direction, status, sendState, readAt }: ConversationMessage): Markup {
  if (direction === 'inbound') return readAt === null ? nothing : badge('neutral', 'marked as read');
  const state = status ?? sendState ?? 'accepted';
  return badge(TONES[state] ?? 'waiting', state);
}
