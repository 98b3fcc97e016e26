import { AUDIT_OPERATIONS } from './audit.ts';
import { KEY_OPERATIONS } from './keys.ts';
import type { PlatformOperation } from './platform-operation.ts';
import { TENANT_OPERATIONS } from './tenants.ts';
import { WABA_OPERATIONS } from './wabas.ts';

/** Every operation that needs a platform key, in the order of the document. */
export const PLATFORM_OPERATIONS: readonly PlatformOperation[] = [
  ...TENANT_OPERATIONS,
  ...WABA_OPERATIONS,
  ...KEY_OPERATIONS,
  ...AUDIT_OPERATIONS,
];
