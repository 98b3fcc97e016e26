import { type NewEvent, publishEvents } from '../../engine/deliveries/publish.ts';
import { PREFERENCE } from '../../platform/event-type.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';

/** That a customer stopped or resumed. `phoneNumberId` null: at every number of the WABA. */
export type PreferenceChange = {
  wabaId: string;
  contactId: string;
  phoneNumberId: string | null;
  scope: string;
  isStop: boolean;
  source: string;
  since: Date;
};

type Customer = { waId: string | null; userId: string | null };

/**
 * Publishes `preference` of each, in their order: one key for a customer, so that the last one received holds. `otherId`: a contact
 * that turned out to be the same person, whose ids they have too.
 */
export async function publishPreferences(
  trx: Transaction,
  changes: readonly PreferenceChange[],
  otherId: string | null = null,
): Promise<void> {
  if (changes.length === 0) return;
  const customers = await query<Customer & { contactId: string; tenantId: string }>(
    trx,
    `select k.id as "contactId", coalesce(k.wa_id, o.wa_id) as "waId", coalesce(nullif(k.user_id, ''), nullif(o.user_id, '')) as "userId",
            w.tenant_id as "tenantId"
       from contacts k join wabas w on w.waba_id = k.waba_id left join contacts o on o.id = cast(:otherId as bigint)
      where k.id = any (cast(:ids as bigint[]))`,
    { ids: changes.map(({ contactId }) => contactId), otherId },
  );
  const byId = new Map(customers.map((customer) => [customer.contactId, customer]));
  const events = changes.flatMap((change): NewEvent[] => {
    const customer = byId.get(change.contactId);
    if (customer === undefined) return [];
    const { wabaId, phoneNumberId } = change;
    const id = `preference_${change.contactId}`;
    return [
      {
        wabaId,
        tenantId: customer.tenantId,
        phoneNumberId,
        type: PREFERENCE,
        eventId: id,
        laneKey: id,
        // Of no conversation: it holds at numbers without one too, and an erasure finds it by the ids in it.
        conversationId: null,
        messageId: null,
        dataJson: preferenceData(customer, change),
      },
    ];
  });
  await publishEvents(trx, events, new Date());
}

/** JSON text of `data` of a `preference` event. */
export function preferenceData(
  { waId, userId }: Customer,
  { phoneNumberId, scope, isStop, source, since }: Omit<PreferenceChange, 'wabaId' | 'contactId'>,
): string {
  const state = isStop ? 'stop' : 'resume';
  return JSON.stringify({ customer: { waId, userId }, phoneNumberId, scope, state, source, since });
}
