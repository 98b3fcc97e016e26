export { WebhookVerificationError } from 'standardwebhooks';
export { createHeliograph, type HeliographOptions } from './create-heliograph.js';
export { HeliographApi } from './generated/sdk.gen.js';
export type * from './generated/types.gen.js';
export { HeliographError } from './heliograph-error.js';
export {
  verifyWebhook,
  verifyWebhookWithPublicKey,
  type WebhookEvent,
  type WebhookHeaders,
} from './verify-webhook.js';
