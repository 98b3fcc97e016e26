import { membersOf } from '../../platform/json/json-members.ts';
import type { UpstreamItem } from '../split/upstream-items.ts';
import { notAfter } from './field-values.ts';

type Read = { body: { signedFor: readonly string[] | null }; items: readonly UpstreamItem[] };

/** The WABAs of which a body says that a customer shared them with the app; of those that its app secret may speak for. */
export function sharedWabas({ body: { signedFor }, items }: Read): { wabaId: string; reportedAt: Date }[] {
  return items.flatMap((item) => {
    if (item.kind !== 'upstream' || item.field !== 'account_update' || !item.isOfPartner) return [];
    const { wabaId, reportedAt, valueJson } = item;
    if (signedFor?.includes(wabaId) === false) return [];
    const { event } = membersOf(JSON.parse(valueJson));
    return event === 'PARTNER_ADDED' ? [{ wabaId, reportedAt: notAfter(reportedAt, new Date()) }] : [];
  });
}
