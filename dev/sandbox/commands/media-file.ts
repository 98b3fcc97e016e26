import { readFile } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import { SandboxCommandError } from './sandbox-client.ts';

/** A file as the platform would hold it. */
export type MediaFile = { bytes: Buffer; mimeType: string; filename: string };

const MIME_TYPES: Record<string, string> = {
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.png': 'image/png',
  '.webp': 'image/webp',
  '.gif': 'image/gif',
  '.mp4': 'video/mp4',
  '.3gp': 'video/3gpp',
  '.mov': 'video/quicktime',
  '.ogg': 'audio/ogg; codecs=opus',
  '.opus': 'audio/ogg; codecs=opus',
  '.mp3': 'audio/mpeg',
  '.m4a': 'audio/mp4',
  '.aac': 'audio/aac',
  '.amr': 'audio/amr',
  '.pdf': 'application/pdf',
  '.txt': 'text/plain',
  '.csv': 'text/csv',
  '.docx': 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  '.xlsx': 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
};

/**
 * Reads a file whole.
 * @throws SandboxCommandError when it cannot be read or is empty.
 */
export async function readFileOrExplain(path: string): Promise<Buffer> {
  try {
    const bytes = await readFile(path);
    if (bytes.length > 0) {
      return bytes;
    }
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'error';
    throw new SandboxCommandError('unreadable_file', `Cannot read ${path} (${reason}).`, { cause: error });
  }
  throw new SandboxCommandError('empty_file', `${path} is empty.`);
}

/**
 * Reads a media file; its type follows from the ending of its name.
 * @throws SandboxCommandError when it cannot be read or is empty.
 */
export async function readMediaFile(path: string): Promise<MediaFile> {
  const bytes = await readFileOrExplain(path);
  const mimeType = MIME_TYPES[extname(path).toLowerCase()] ?? 'application/octet-stream';
  return { bytes, mimeType, filename: basename(path) };
}
