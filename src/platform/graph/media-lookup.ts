import { type GraphConnection, graphGet } from './graph-connection.ts';
import { noAnswer } from './graph-error.ts';

/** What upstream knows of a media object; `url` lives for five minutes and needs the access token. */
export type MediaMetadata = {
  url: string;
  mimeType: string | null;
  /** Hexadecimal, or base64, as upstream gave it. */
  sha256: string | null;
  sizeBytes: number | null;
};

/**
 * Looks a media object up: `GET /{media-id}`. Without `phone_number_id`, which upstream answers with an error for
 * some inbound media. Throws GraphError.
 */
export async function lookUpMedia(
  connection: GraphConnection,
  mediaId: string,
  token: string,
  signal?: AbortSignal,
): Promise<MediaMetadata> {
  const answer = await graphGet(connection, { path: [mediaId], token, signal });
  const { url } = answer;
  if (typeof url !== 'string' || url === '') throw noAnswer('its answer names no media address');
  return {
    url,
    mimeType: textOrNull(answer.mime_type),
    sha256: textOrNull(answer.sha256),
    sizeBytes: sizeOf(answer.file_size),
  };
}

/** `file_size` is a number in practice and a string in the platform's own OpenAPI file. */
function sizeOf(value: unknown): number | null {
  const size = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof size === 'number' && Number.isSafeInteger(size) && size >= 0 ? size : null;
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}
