import type { Knex } from 'knex';
import { createIndexConcurrently } from '../concurrent-index.ts';

/** When endpoints learn that a customer service window closes; null: 60 minutes before. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table webhook_endpoints add window_closing_minutes integer');
  await createIndexConcurrently(
    knex,
    'webhook_endpoints_windows',
    `on webhook_endpoints (waba_id) where 'window.closing' = any (event_types)`,
  );
}

export const config = { transaction: false };
