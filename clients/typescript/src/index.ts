export { WebhookVerificationError } from 'standardwebhooks';
export { createHeliograph, type HeliographOptions } from './create-heliograph.js';
export type { Download, FileContent, FileDescription } from './files.js';
export type * as platform from './generated/platform/types.gen.js';
export { HeliographApi } from './generated/sdk.gen.js';
export type * from './generated/types.gen.js';
export { Heliograph } from './heliograph.js';
export { HeliographConnectionError, HeliographError, HeliographTimeoutError } from './heliograph-error.js';
export { HeliographPlatform } from './heliograph-platform.js';
export type { RetryOptions } from './retrying-fetch.js';
export {
  verifyWebhook,
  verifyWebhookWithPublicKey,
  type WebhookEvent,
  type WebhookHeaders,
} from './verify-webhook.js';
