import type { InboundRequest } from './inbound-request.ts';
import type { JsonObject } from './webhook-body.ts';

/** A media object that a message refers to. */
export type MediaReference = {
  id: string;
  mimeType: string;
  sha256Base64: string;
  filename?: string;
  /** The short-lived download address that newer webhooks carry. */
  url?: string;
};

const MEDIA_TYPES = new Set(['image', 'video', 'audio', 'document', 'sticker']);

/** True for message types that carry one media object. */
export function isMediaType(type: string): boolean {
  return MEDIA_TYPES.has(type);
}

function extras(request: InboundRequest, media: MediaReference): JsonObject {
  switch (request.type) {
    case 'audio':
      return { voice: request.voice ?? true };
    case 'sticker':
      return { animated: request.animated ?? false };
    case 'document':
      return { filename: request.filename ?? media.filename ?? 'receipt.pdf' };
    default:
      return {};
  }
}

/** The member of a media message: image, video, audio, document or sticker. */
export function mediaContent(request: InboundRequest, media: MediaReference): JsonObject {
  const mayHaveCaption = request.type !== 'audio' && request.type !== 'sticker';
  const content = {
    ...(mayHaveCaption && request.caption !== undefined ? { caption: request.caption } : {}),
    mime_type: request.mimeType ?? media.mimeType,
    sha256: media.sha256Base64,
    id: media.id,
    ...(media.url === undefined ? {} : { url: media.url }),
    ...extras(request, media),
  };
  return { [request.type]: content };
}
