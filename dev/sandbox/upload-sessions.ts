import { randomBytes } from 'node:crypto';

type UploadSession = { mimeType: string; sizeBytes: number; gotBytes: number };

/** Resumable uploads of one server; of their bytes only the count is kept. */
export type UploadSessions = {
  begin: (mimeType: string, sizeBytes: number) => string;
  find: (id: string) => UploadSession | undefined;
  /** The handle of the file once it is whole; undefined while some of it is missing. */
  take: (session: UploadSession, sizeBytes: number) => string | undefined;
  isHandle: (handle: string) => boolean;
};

const SIGNATURE = '?sig=';

/** Creates them in memory. */
export function createUploadSessions(): UploadSessions {
  const sessions = new Map<string, UploadSession>();
  const handles = new Set<string>();
  return {
    begin: (mimeType, sizeBytes) => {
      const id = `upload:MTphdHRhY2htZW50Oj${randomBytes(16).toString('base64url')}`;
      sessions.set(id, { mimeType, sizeBytes, gotBytes: 0 });
      return `${id}${SIGNATURE}ARZ${randomBytes(12).toString('base64url')}`;
    },
    find: (id) => sessions.get(id),
    take: (session, sizeBytes) => {
      session.gotBytes += sizeBytes;
      if (session.gotBytes < session.sizeBytes) {
        return undefined;
      }
      const type = Buffer.from(session.mimeType).toString('base64');
      const handle = `4::${type}:ARb${randomBytes(24).toString('base64url')}`;
      handles.add(handle);
      return handle;
    },
    isHandle: (handle) => handles.has(handle),
  };
}
