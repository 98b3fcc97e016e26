-- The mode `failures` is gone: these endpoints do as the installation says. Their column `max_retry_workflows` is read no more.

update webhook_endpoints set delivery_workflows = null, version = version + 1, updated_at = now()
  where delivery_workflows = 'failures';
