import {
  items,
  type JsonNode,
  member,
  memberRemovals,
  members,
  stringOf,
  type TextEdit,
} from '../platform/json/json-text.ts';
import { idOf, shortTextOf, storableText } from '../platform/json/storable-text.ts';

const MEDIA_TYPES = new Set(['image', 'video', 'audio', 'voice', 'document', 'sticker']);
const MAX_TYPE_CHARS = 128;
const MAX_MIME_TYPE_CHARS = 256;
const MAX_SHA256_CHARS = 128;
const MAX_URL_CHARS = 4096;
const MAX_CAPTION_CHARS = 4096;
const MAX_FILE_NAME_CHARS = 512;

const MAX_ERROR_CHARS = 512;
/** Upstream could not fetch what the customer sent. */
const MEDIA_DOWNLOAD_ERROR = '131052';

/** Media that a message carries, to be fetched from upstream unless upstream itself never had it. */
export type MediaReference = {
  /** The message type that carries it: image, video, audio, document, sticker, voice or one of the future. */
  mediaType: string;
  /** Null: upstream never had it. */
  upstreamMediaId: string | null;
  /** What upstream says about media without an id. */
  upstreamError: string | null;
  mimeType: string | null;
  /** As upstream gives it: base64 in webhooks, hexadecimal in lookups. */
  sha256: string | null;
  /** Short-lived address that needs our access token. */
  url: string | null;
  caption: string | null;
  fileName: string | null;
};

function isMediaObject(type: string, node: JsonNode | null): node is JsonNode {
  if (node?.kind !== 'object') return false;
  return (
    MEDIA_TYPES.has(type) || (member(node, 'id') !== null && stringOf(member(node, 'mime_type')) !== null)
  );
}

function readUrl(media: JsonNode): string | null {
  const url = stringOf(member(media, 'url'));
  // A cut address leads nowhere; without one the media id is looked up.
  return url !== null && url.length > MAX_URL_CHARS ? null : shortTextOf(member(media, 'url'), MAX_URL_CHARS);
}

/** The first of upstream's `errors`: the code and a text. */
function readError(holder: JsonNode | null): { code: string | null; text: string | null } {
  const error = items(member(holder, 'errors'))[0] ?? null;
  const [code, text] = [
    shortTextOf(member(error, 'code'), MAX_TYPE_CHARS),
    shortTextOf(member(error, 'message'), MAX_ERROR_CHARS) ??
      shortTextOf(member(error, 'title'), MAX_ERROR_CHARS),
  ];
  return { code, text: [code, text].filter((part) => part !== null).join(' ') || null };
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
    mediaType: storableText(type, MAX_TYPE_CHARS),
    mimeType: shortTextOf(member(content, 'mime_type'), MAX_MIME_TYPE_CHARS),
    sha256: shortTextOf(member(content, 'sha256'), MAX_SHA256_CHARS),
    url: content === null ? null : readUrl(content),
    caption: shortTextOf(member(content, 'caption'), MAX_CAPTION_CHARS),
    fileName: shortTextOf(member(content, 'filename'), MAX_FILE_NAME_CHARS),
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

/** The edits that take the short-lived media `url` out of a message, and out of a message inside its `edit`. */
export function mediaUrlRemovals(message: JsonNode): TextEdit[] {
  const type = stringOf(member(message, 'type'));
  if (type === null) return [];
  // All members of that name, because a receiver may read another repetition than we do.
  const contents = members(message)
    .filter(({ name }) => stringOf(name) === type)
    .map(({ value }) => value);
  if (type !== 'edit') {
    return contents.flatMap((content) =>
      isMediaObject(type, content) ? memberRemovals(content, ['url']) : [],
    );
  }
  return contents
    .flatMap((content) => members(content))
    .filter(({ name, value }) => stringOf(name) === 'message' && stringOf(member(value, 'type')) !== 'edit')
    .flatMap(({ value }) => mediaUrlRemovals(value));
}
