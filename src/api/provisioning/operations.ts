import { AUDIT_OPERATIONS } from './audit.ts';
import { BRAND_OPERATIONS } from './brands.ts';
import { ENDPOINT_OPERATIONS } from './endpoints.ts';
import { HOOK_OPERATIONS } from './hooks.ts';
import { KEY_OPERATIONS } from './keys.ts';
import { listOperationEvents } from './operation-events.ts';
import type { PlatformOperation } from './platform-operation.ts';
import { PORTAL_SESSION_OPERATIONS } from './portal-sessions.ts';
import { SETUP_LINK_OPERATIONS } from './setup-links.ts';
import { TENANT_OPERATIONS } from './tenants.ts';
import { USAGE_OPERATIONS } from './usage.ts';
import { USER_OPERATIONS } from './users.ts';
import { WABA_OPERATIONS } from './wabas.ts';

/** Every operation that needs a platform key, in the order of the document. */
export const PLATFORM_OPERATIONS: readonly PlatformOperation[] = [
  ...TENANT_OPERATIONS,
  ...WABA_OPERATIONS,
  ...KEY_OPERATIONS,
  ...ENDPOINT_OPERATIONS,
  ...USER_OPERATIONS,
  ...USAGE_OPERATIONS,
  ...PORTAL_SESSION_OPERATIONS,
  ...SETUP_LINK_OPERATIONS,
  ...BRAND_OPERATIONS,
  ...AUDIT_OPERATIONS,
  listOperationEvents,
  ...HOOK_OPERATIONS,
];
