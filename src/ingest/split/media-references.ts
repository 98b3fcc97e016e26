import type { MediaReference } from '../../features/messages/media/media.ts';
import {
  items,
  type JsonNode,
  member,
  members,
  stringOf,
  type TextEdit,
} from '../../platform/json/json-text.ts';
import { idOf, shortTextOf, storableText } from '../../platform/json/storable-text.ts';
import { MAX_CHARS } from './item-context.ts';
import { memberRemovals } from './member-removals.ts';

const MEDIA_TYPES = new Set(['image', 'video', 'audio', 'voice', 'document', 'sticker']);
/** Upstream could not fetch what the customer sent. */
const MEDIA_DOWNLOAD_ERROR = '131052';

function isMediaObject(type: string, node: JsonNode | null): node is JsonNode {
  if (node?.kind !== 'object') return false;
  return (
    MEDIA_TYPES.has(type) || (member(node, 'id') !== null && stringOf(member(node, 'mime_type')) !== null)
  );
}

function readUrl(media: JsonNode): string | null {
  const url = stringOf(member(media, 'url'));
  // A cut address leads nowhere; without one the media id is looked up.
  return url !== null && url.length > MAX_CHARS.url ? null : shortTextOf(member(media, 'url'), MAX_CHARS.url);
}

function readError(holder: JsonNode | null): { code: string | null; text: string | null } {
  const [error = null] = items(member(holder, 'errors'));
  const textIn = (name: string) => shortTextOf(member(error, name), MAX_CHARS.mediaError);
  const code = shortTextOf(member(error, 'code'), MAX_CHARS.type);
  const text = [code, textIn('message') ?? textIn('title')].filter((part) => part !== null).join(' ');
  return { code, text: text || null };
}

/** Media that the customer sent and that upstream has no id of; it says so by `errors`, or as an unsupported type. */
function readMissingMedia(message: JsonNode, type: string, content: JsonNode | null): MediaReference | null {
  const ofMessage = readError(message);
  const isUnsupported = type === 'unsupported' && ofMessage.code === MEDIA_DOWNLOAD_ERROR;
  if (!isUnsupported && !MEDIA_TYPES.has(type)) return null;
  const sentType = isUnsupported ? (stringOf(member(content, 'type')) ?? type) : type;
  return {
    ...describeMedia(sentType, content),
    url: null,
    upstreamMediaId: null,
    upstreamError: ofMessage.text ?? readError(content).text,
  };
}

function describeMedia(type: string, content: JsonNode | null) {
  return {
    mediaType: storableText(type, MAX_CHARS.type),
    mimeType: shortTextOf(member(content, 'mime_type'), MAX_CHARS.mimeType),
    sha256: shortTextOf(member(content, 'sha256'), MAX_CHARS.sha256),
    url: content === null ? null : readUrl(content),
    caption: shortTextOf(member(content, 'caption'), MAX_CHARS.caption),
    fileName: shortTextOf(member(content, 'filename'), MAX_CHARS.fileName),
  };
}

/** The media of a message, also of one that an `edit` carries; null when there is none. Throws OversizedIdError. */
export function readMediaReference(message: JsonNode): MediaReference | null {
  const type = stringOf(member(message, 'type'));
  if (type === null) return null;
  const content = member(message, type);
  if (type === 'edit') {
    const edited = member(content, 'message');
    // One level only: an edit does not carry another edit.
    return edited === null || stringOf(member(edited, 'type')) === 'edit' ? null : readMediaReference(edited);
  }
  const upstreamMediaId = isMediaObject(type, content) ? idOf(member(content, 'id')) : null;
  if (upstreamMediaId === null) return readMissingMedia(message, type, content);
  return { ...describeMedia(type, content), upstreamMediaId, upstreamError: null };
}

/** Takes the short-lived media `url` out of a message, and out of a message inside its `edit`. */
export function mediaUrlRemovals(message: JsonNode): TextEdit[] {
  const type = stringOf(member(message, 'type'));
  if (type === null) return [];
  // All members of that name, because a receiver may read another repetition than we do.
  const contents = members(message)
    .filter(({ name }) => stringOf(name) === type)
    .map(({ value }) => value);
  const urlIn = (content: JsonNode) => (isMediaObject(type, content) ? memberRemovals(content, ['url']) : []);
  if (type !== 'edit') return contents.flatMap(urlIn);
  return contents
    .flatMap((content) => members(content))
    .filter(({ name, value }) => stringOf(name) === 'message' && stringOf(member(value, 'type')) !== 'edit')
    .flatMap(({ value }) => mediaUrlRemovals(value));
}
