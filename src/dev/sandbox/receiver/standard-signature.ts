import { timingSafeEqual } from 'node:crypto';
import { signStandard, UnusableSignatureInputError } from '../../../deliveries/webhook-signature.ts';

/** The signed parts of a webhook, as its headers carry them. */
type SignedWebhook = { id: string; timestamp: string; signature: string; body: Buffer };

const TOLERANCE_SECONDS = 5 * 60;

function isSame(one: string, other: string): boolean {
  const [first, second] = [Buffer.from(one), Buffer.from(other)];
  return first.length === second.length && timingSafeEqual(first, second);
}

function expectedSignature(
  secret: string,
  webhook: SignedWebhook,
  timestampSeconds: number,
): string | undefined {
  try {
    return signStandard({ secrets: [secret], id: webhook.id, timestampSeconds, body: webhook.body });
  } catch (error) {
    if (error instanceof UnusableSignatureInputError) {
      return undefined;
    }
    throw error;
  }
}

/**
 * Whether one of the signatures of a webhook is made with one of the secrets, over exactly these bytes,
 * within five minutes: the check of Standard Webhooks. Never throws.
 */
export function isSignedWithAny(webhook: SignedWebhook, secrets: readonly string[], nowMs: number): boolean {
  if (!/^\d{1,15}$/.test(webhook.timestamp)) {
    return false;
  }
  const timestampSeconds = Number(webhook.timestamp);
  if (Math.abs(nowMs / 1000 - timestampSeconds) > TOLERANCE_SECONDS) {
    return false;
  }
  const given = webhook.signature.split(' ');
  return secrets.some((secret) => {
    const expected = expectedSignature(secret, webhook, timestampSeconds);
    return expected !== undefined && given.some((signature) => isSame(signature, expected));
  });
}
