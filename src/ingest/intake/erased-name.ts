import { erasedName } from '../../features/messages/messages.ts';
import type { UpstreamItem } from '../split/upstream-items.ts';

/** The name by which an erased item is remembered; null for what is about no message. */
export function erasedNameOf(item: UpstreamItem): string | null {
  return item.kind === 'message' || item.kind === 'status' ? erasedName(item, item.upstreamId) : null;
}
