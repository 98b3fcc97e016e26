import { ApiError } from '../../errors/api-error.ts';

/** Each upload holds up to two parts of 5 MiB. */
const PER_PROCESS = 24;
const PER_TENANT = 6;

const RETRY_AFTER = { 'retry-after': '2' };

export type UploadSlots = {
  /**
   * Takes a slot; the returned function releases it. When all are taken, the oldest upload of the tenant with the most
   * is cut for a tenant that has fewer. Throws ApiError 429 or 503.
   */
  take(tenantId: string, cut: (error: ApiError) => void): () => void;
};

type Upload = { tenantId: string; cut: (error: ApiError) => void };

export function makeUploadSlots(): UploadSlots {
  // In the order in which they began.
  const uploads = new Set<Upload>();
  const counts = new Map<string, number>();

  const end = (upload: Upload): void => {
    if (!uploads.delete(upload)) return;
    const left = (counts.get(upload.tenantId) ?? 1) - 1;
    if (left === 0) counts.delete(upload.tenantId);
    else counts.set(upload.tenantId, left);
  };

  const makeRoom = (own: number): void => {
    const most = Math.max(...counts.values());
    const oldest = [...uploads].find(({ tenantId }) => counts.get(tenantId) === most);
    if (oldest === undefined || most <= own + 1) throw full();
    end(oldest);
    oldest.cut(full());
  };

  return {
    take(tenantId, cut) {
      const own = counts.get(tenantId) ?? 0;
      if (own >= PER_TENANT) throw new ApiError('too_many_uploads', { headers: RETRY_AFTER });
      if (uploads.size >= PER_PROCESS) makeRoom(own);
      const upload = { tenantId, cut };
      counts.set(tenantId, own + 1);
      uploads.add(upload);
      return () => end(upload);
    },
  };
}

function full(): ApiError {
  return new ApiError('service_unavailable', { headers: RETRY_AFTER });
}
