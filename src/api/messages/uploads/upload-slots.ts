import { ApiError } from '../../errors/api-error.ts';

/** Each upload holds up to two parts of 5 MiB. */
const PER_PROCESS = 24;
const PER_WABA = 6;

const RETRY_AFTER = { 'retry-after': '2' };

/** How many uploads are under way in this process. */
export type UploadSlots = {
  /**
   * Takes a slot; the returned function gives it back. When all are taken, the oldest upload of the WABA with the most
   * is cut for a WABA that has fewer. Throws ApiError 429 or 503.
   */
  take(wabaId: string, cut: (error: ApiError) => void): () => void;
};

type Upload = { wabaId: string; cut: (error: ApiError) => void };

export function makeUploadSlots(): UploadSlots {
  // In the order in which they began.
  const uploads = new Set<Upload>();
  const counts = new Map<string, number>();

  const end = (upload: Upload): void => {
    if (!uploads.delete(upload)) return;
    const left = (counts.get(upload.wabaId) ?? 1) - 1;
    if (left === 0) counts.delete(upload.wabaId);
    else counts.set(upload.wabaId, left);
  };

  const makeRoom = (own: number): void => {
    const most = Math.max(...counts.values());
    const oldest = [...uploads].find(({ wabaId }) => counts.get(wabaId) === most);
    if (oldest === undefined || most <= own + 1) throw full();
    end(oldest);
    oldest.cut(full());
  };

  return {
    take(wabaId, cut) {
      const own = counts.get(wabaId) ?? 0;
      if (own >= PER_WABA) throw new ApiError('too_many_uploads', { headers: RETRY_AFTER });
      if (uploads.size >= PER_PROCESS) makeRoom(own);
      const upload = { wabaId, cut };
      counts.set(wabaId, own + 1);
      uploads.add(upload);
      return () => end(upload);
    },
  };
}

function full(): ApiError {
  return new ApiError('service_unavailable', { headers: RETRY_AFTER });
}
