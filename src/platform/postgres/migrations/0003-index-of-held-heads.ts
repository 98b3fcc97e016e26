import type { Knex } from 'knex';
import { createIndexConcurrently } from '../concurrent-index.ts';

/** Counting what an endpoint's lanes hold back read all that waits for it. */
export async function up(knex: Knex): Promise<void> {
  await createIndexConcurrently(
    knex,
    'delivery_queue_held',
    `on delivery_queue (endpoint_id) where state in ('unreleased', 'suspended')`,
  );
}

export const config = { transaction: false };
