import type { SendOutcome } from '../../../platform/graph/graph-send.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { marketingRouteOf } from '../../accounts/marketing-route.ts';
import type { SendPath } from './outbound-messages.ts';

/** The call of upstream for a message that names none: marketing templates have a separate one. */
export async function pathFor(
  database: Database,
  phoneNumberId: string,
  category: string | null | undefined,
): Promise<SendPath> {
  if (category !== 'MARKETING') return 'messages';
  return (await marketingRouteOf(database, phoneNumberId)) === 'never' ? 'messages' : 'marketing_messages';
}

/** The template is no marketing template, or the account is not enrolled. */
const REFUSED_AS_MARKETING = new Set([131_055, 134_100, 134_102]);
/** Marketing templates are off at /messages. */
const REFUSED_ELSEWHERE = 131_063;

type Sent = { phoneNumberId: string; upstreamPath: SendPath; payloadJson: string };

/**
 * The other call, when upstream refused a message for the call that it came by, and sent nothing; null: the refusal stands. Who names a
 * `product_policy` has said what upstream is to do then.
 */
export async function pathAfterRefusal(
  database: Database,
  { phoneNumberId, upstreamPath, payloadJson }: Sent,
  outcome: SendOutcome,
): Promise<SendPath | null> {
  if (outcome.kind !== 'refused' || outcome.code === null) return null;
  const isMarketing = upstreamPath === 'marketing_messages';
  const isOfCall = isMarketing ? REFUSED_AS_MARKETING.has(outcome.code) : outcome.code === REFUSED_ELSEWHERE;
  if (!isOfCall || 'product_policy' in (JSON.parse(payloadJson) as object)) return null;
  if ((await marketingRouteOf(database, phoneNumberId)) !== 'auto') return null;
  return isMarketing ? 'messages' : 'marketing_messages';
}
