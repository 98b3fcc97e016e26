import { type Static, Type } from 'typebox';
import type { MessageMedia } from '../../messages/conversations/media-columns.ts';
import { MEDIA_ROOT } from '../../messages/media/media-path.ts';

export const MediaError = Type.Object(
  { code: Type.String(), message: Type.String() },
  { title: 'MediaError' },
);

/** Where the stored file of a message is; both null unless it is stored. */
export function mediaAddress(
  media: MessageMedia,
  publicUrl: string,
): { mediaPath: string | null; mediaUrl: string | null } {
  if (media.mediaState !== 'stored' || media.objectKey === null) return { mediaPath: null, mediaUrl: null };
  const mediaPath = `${MEDIA_ROOT}${media.objectKey}`;
  return { mediaPath, mediaUrl: `${publicUrl}${mediaPath}` };
}

/** Why media will never be there; absent unless that is so. */
export function mediaErrorOf(media: MessageMedia): { mediaError?: Static<typeof MediaError> } {
  if (media.mediaState !== 'failed') return {};
  return {
    mediaError: {
      code: media.errorCode ?? 'unknown',
      message: media.errorMessage ?? 'The media could not be stored.',
    },
  };
}

/** What the message says about its file; absent where it says nothing. */
export function mediaDescription(media: MessageMedia): { caption?: string; fileName?: string } {
  return {
    ...(media.caption !== null && { caption: media.caption }),
    ...(media.fileName !== null && { fileName: media.fileName }),
  };
}
