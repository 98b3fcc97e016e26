import type { Knex } from 'knex';

/**
 * A delivery that blocked its lane for too long steps aside into a lane of its own (docs/decisions/0040). Overdue
 * deliveries are looked after in turn: `swept_at` is when that was last done, so none hides those behind it.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    alter table deliveries add column stepped_aside_at timestamptz;
    alter table delivery_queue add column stepped_aside_at timestamptz, add column swept_at timestamptz;
    create index delivery_queue_blocking on delivery_queue (first_failed_at)
      where state = 'retrying' and first_failed_at is not null and stepped_aside_at is null;
    create index delivery_queue_overdue on delivery_queue (greatest(next_attempt_at, swept_at))
      where state = 'retrying' and not awaits_workflow;
    drop index delivery_queue_retrying;
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    create index delivery_queue_retrying on delivery_queue (next_attempt_at) where state = 'retrying';
    drop index delivery_queue_blocking, delivery_queue_overdue;
    alter table delivery_queue drop column stepped_aside_at, drop column swept_at;
    alter table deliveries drop column stepped_aside_at;
  `);
}
