-- Event types of an endpoint whose deliveries always have a run; null: as `delivery_workflows` says.

alter table webhook_endpoints add always_workflows_for text[];
