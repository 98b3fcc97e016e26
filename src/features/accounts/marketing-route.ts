import type { Audited } from '../../platform/audit/audit.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { query, queryValue } from '../../platform/postgres/sql.ts';
import { invalidValue } from '../../platform/request-input.ts';
import { setOfNumber } from './number-pace.ts';

/**
 * Where marketing templates of a number go. auto: to /marketing_messages, and to /messages where upstream refuses them there; always: to
 * /marketing_messages only; never: to /messages.
 */
export const MARKETING_ROUTES = ['auto', 'always', 'never'] as const;

export type MarketingRoute = (typeof MARKETING_ROUTES)[number];

/** Throws RequestError: `invalid_value`, `unknown_phone_number`. */
export async function setMarketingRoute(
  tools: { database: Database } & Audited,
  wabaId: string,
  { phoneNumberId, route }: { phoneNumberId: string; route: string },
): Promise<void> {
  if (!MARKETING_ROUTES.some((known) => known === route)) {
    throw invalidValue(`The route must be one of ${MARKETING_ROUTES.join(', ')}.`, 'route');
  }
  await setOfNumber(tools, wabaId, phoneNumberId, {
    column: 'marketing_route',
    action: 'phone_number.marketing_route_set',
    detail: { route },
  });
}

/** Of each number of a WABA. */
export async function listMarketingRoutes(
  database: Database,
  wabaId: string,
): Promise<Map<string, MarketingRoute>> {
  const text =
    'select phone_number_id as id, marketing_route as route from phone_numbers where waba_id = :wabaId';
  const rows = await query<{ id: string; route: MarketingRoute }>(database, text, { wabaId });
  return new Map(rows.map(({ id, route }) => [id, route]));
}

export async function marketingRouteOf(database: Database, phoneNumberId: string): Promise<MarketingRoute> {
  const text = 'select marketing_route from phone_numbers where phone_number_id = :phoneNumberId';
  return (await queryValue<MarketingRoute>(database, text, { phoneNumberId })) ?? 'auto';
}
