-- Counting what an endpoint's lanes hold back read all that waits for it.

create index concurrently delivery_queue_held on delivery_queue (endpoint_id) where state in ('unreleased', 'suspended');
