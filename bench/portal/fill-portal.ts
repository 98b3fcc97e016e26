import { seedDemoUsers } from '../../dev/start.ts';
import { insertTenant, savePhoneNumber, saveWaba } from '../../src/features/accounts/accounts.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { execute, query } from '../../src/platform/postgres/sql.ts';
import { addManyDeliveries } from '../../test/integration/portal/deliveries/many-deliveries.ts';
import { fillMessages } from '../reads/fill-messages.ts';

export const WABA = '900000000000001';
const NUMBER = '800000000000001';
export const OPERATOR = { email: 'operator@heliograph.example', password: 'correct horse battery' };

const ENDPOINTS = 5;
const MESSAGES = 100_000;
const WAITING = 100_000;

/** One WABA with five endpoints, `deliveries` in its log, 100,000 more that wait, and 100,000 messages. */
export async function fillPortal(
  database: Database,
  deliveries: number,
  log: (line: string) => void,
): Promise<{ endpointId: string; conversationId: string }> {
  const tenantId = await insertTenant(database, 'Bench');
  await saveWaba(database, tenantId, { wabaId: WABA, accessTokenSealed: null });
  const number = { displayPhoneNumber: '12025550100', verifiedName: 'Bench', qualityRating: 'GREEN' };
  await savePhoneNumber(database, WABA, { phoneNumberId: NUMBER, ...number });
  await seedDemoUsers(database, [{ ...OPERATOR, name: 'Operator', role: 'operator', tenantId: null }]);
  const endpoints = await query<{ id: string }>(
    database,
    `insert into webhook_endpoints (waba_id, url, secret_sealed)
     select :waba, 'https://receiver.example/' || n, '' from generate_series(1, cast(:count as integer)) n
     returning id`,
    { waba: WABA, count: ENDPOINTS },
  );
  const endpointIds = endpoints.map(({ id }) => id);
  const [endpointId = ''] = endpointIds;
  log(`filling in ${deliveries.toLocaleString('en-US')} deliveries`);
  await addManyDeliveries(database, { wabaId: WABA, endpointIds, count: deliveries });
  await addWaiting(database, endpointId);
  await addMinutes(database);
  const place = { wabaId: WABA, phoneNumberId: NUMBER };
  const { longConversationId } = await fillMessages(database, place, MESSAGES, log);
  await database.raw('vacuum analyze');
  return { endpointId, conversationId: longConversationId };
}

/** Deliveries that wait at one endpoint. */
async function addWaiting(database: Database, endpointId: string): Promise<void> {
  await execute(
    database,
    `insert into delivery_queue (endpoint_id, lane, state, released, delivery_day, delivery_id, event_day, event_uuid,
                                 attempts)
     select :endpointId, 'own ' || n, 'due', true, current_date, gen_random_uuid(), current_date, gen_random_uuid(), 0
       from generate_series(1, cast(:count as integer)) n`,
    { endpointId, count: WAITING },
  );
}

/** What the worker counts of attempts, for each minute of a day. */
async function addMinutes(database: Database): Promise<void> {
  await execute(
    database,
    `insert into endpoint_minutes (endpoint_id, minute, successes, failures, total_ms)
     select id, date_trunc('minute', now()) - n * interval '1 minute', 140, n % 7, 6000
       from webhook_endpoints cross join generate_series(0, 2879) n`,
    {},
  );
}
