import { type AttemptVerdict, judgeAttempt } from '../../engine/deliveries/judge-outcome.ts';
import { signStandard } from '../../engine/endpoint/webhook-signature.ts';
import { openOrNull, type SecretBox } from '../../platform/crypto/secret-box.ts';
import type { TargetLists } from '../../platform/http/outbound-url.ts';
import { type HttpSender, isProxyFailure } from '../../platform/sender/http-sender.ts';

export type SendingTools = {
  sender: HttpSender;
  secretBox: SecretBox;
  /** Longest time of a whole request, in ms. */
  timeoutMs: number;
};

/** A fault of our egress proxy says nothing about the receiver and uses up no attempt. */
export const PROXY_WAIT_MS = 30_000;

/** `ours`: the receiver is not the reason. */
export type SendingVerdict = AttemptVerdict | { kind: 'ours' | 'unreadable'; reason: string };

type Message = {
  url: string;
  id: string;
  body: Buffer;
  /** The secrets that sign it, as they are stored, and where. */
  sealed: readonly string[];
  place: string;
  targets?: TargetLists;
  headers(signed: { timestampSeconds: number; signature: string }): Record<string, string>;
};

/** Sends what no delivery is, an operation event or an alert, once, signed as webhooks are. */
export async function attemptSigned(
  { sender, secretBox, timeoutMs }: SendingTools,
  { url, id, body, sealed, place, targets, headers }: Message,
): Promise<SendingVerdict> {
  const secrets = sealed.flatMap((text) => openOrNull(secretBox, text, place) ?? []);
  if (secrets.length < sealed.length) return { kind: 'unreadable', reason: UNREADABLE_SECRET };
  const timestampSeconds = Math.floor(Date.now() / 1_000);
  const signature = signStandard({ secrets, id, timestampSeconds, body });
  const result = await sender.send({
    url,
    headers: headers({ timestampSeconds, signature }),
    body,
    timeoutMs,
    ...(targets !== undefined && { targets }),
  });
  const verdict = judgeAttempt(result);
  return isProxyFailure(result) && verdict.kind === 'retry'
    ? { kind: 'ours', reason: verdict.reason }
    : verdict;
}

const UNREADABLE_SECRET = 'the secret that signs it cannot be read (HELIOGRAPH_ENCRYPTION_KEYS)';
