import type { Database } from '../../platform/postgres/database.ts';
import { execute } from '../../platform/postgres/sql.ts';

/** SQL: draws as many numbers for each tenant as `given` has rows of it; `before` is the last that was drawn before them. */
export const DRAW_ORDER_NUMBERS = `update tenants t set last_order_number = t.last_order_number + g.orders
         from (select tenant_id, count(*) as orders from given group by tenant_id) as g
        where t.id = g.tenant_id
       returning t.id, t.last_order_number - g.orders as before`;

const PASSED_NUMBERS = 1_000;

/** Skips a thousand numbers of each tenant, which may have gone out and are not known any more. */
export async function passOrderNumbers(database: Database): Promise<void> {
  await execute(
    database,
    `update tenants set last_order_number = last_order_number + ${PASSED_NUMBERS} where last_order_number > 0`,
  );
}
