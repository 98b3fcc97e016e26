import { type Audited, recordChange } from '../../platform/audit/audit.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { execute, queryValue } from '../../platform/postgres/sql.ts';
import { invalidValue } from '../../platform/request-input.ts';
import { unknownNumber } from './number-pace.ts';

/**
 * Where marketing templates of a number go. auto: to /marketing_messages, and to /messages where upstream refuses them there; always: to
 * /marketing_messages only; never: to /messages.
 */
export const MARKETING_ROUTES = ['auto', 'always', 'never'] as const;

export type MarketingRoute = (typeof MARKETING_ROUTES)[number];

/** Throws RequestError: `invalid_value`, `unknown_phone_number`. */
export async function setMarketingRoute(
  { database, actor }: { database: Database } & Audited,
  wabaId: string,
  { phoneNumberId, route }: { phoneNumberId: string; route: string },
): Promise<void> {
  if (!MARKETING_ROUTES.some((known) => known === route)) {
    throw invalidValue(`The route must be one of ${MARKETING_ROUTES.join(', ')}.`, 'route');
  }
  await database.transaction(async (trx) => {
    const text =
      'update phone_numbers set marketing_route = :route where waba_id = :wabaId and phone_number_id = :phoneNumberId';
    const changed = await execute(trx, text, { route, wabaId, phoneNumberId });
    if (changed === 0) throw unknownNumber(phoneNumberId);
    const target = `phone number ${phoneNumberId}`;
    const action = 'phone_number.marketing_route_set';
    await recordChange(trx, actor, { wabaId, action, target, detail: { route } });
  });
}

export async function marketingRouteOf(database: Database, phoneNumberId: string): Promise<MarketingRoute> {
  const text = 'select marketing_route from phone_numbers where phone_number_id = :phoneNumberId';
  return (await queryValue<MarketingRoute>(database, text, { phoneNumberId })) ?? 'auto';
}
