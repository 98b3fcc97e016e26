import { ApiError } from '../../errors/api-error.ts';

/** Each upload holds up to two parts of 5 MiB. */
const PER_PROCESS = 24;
const PER_WABA = 6;

const RETRY_AFTER = { 'retry-after': '2' };

/** How many uploads are under way in this process. */
export type UploadSlots = {
  /** Takes a slot; the returned function gives it back. Throws ApiError 429 or 503. */
  take(wabaId: string): () => void;
};

export function makeUploadSlots(): UploadSlots {
  const counts = new Map<string, number>();
  let total = 0;
  return {
    take(wabaId) {
      const own = counts.get(wabaId) ?? 0;
      if (own >= PER_WABA) throw new ApiError('too_many_uploads', { headers: RETRY_AFTER });
      if (total >= PER_PROCESS) throw new ApiError('service_unavailable', { headers: RETRY_AFTER });
      counts.set(wabaId, own + 1);
      total += 1;
      return () => {
        const left = (counts.get(wabaId) ?? 1) - 1;
        if (left === 0) counts.delete(wabaId);
        else counts.set(wabaId, left);
        total -= 1;
      };
    },
  };
}
