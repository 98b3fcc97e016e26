import type { Database } from '../../platform/postgres/database.ts';
import { openRateLimitStore } from '../../platform/postgres/rate-limit-store.ts';
import { RequestError } from '../../platform/request-input.ts';

const HOUR_SECONDS = 3_600;

const PER_TENANT = { links: 20, windowSeconds: HOUR_SECONDS, text: 'an hour' };
const PER_RECIPIENT = { links: 3, windowSeconds: 24 * HOUR_SECONDS, text: 'a day for one e-mail address' };

/**
 * Counts a link that a tenant's administrator makes: it may be mailed to any address. A null tenant is an operator, who
 * is not limited. An address is counted per tenant, so that none keeps others from inviting it.
 * Throws RequestError `too_many_links`.
 */
export async function countLink(database: Database, tenantId: string | null, email: string): Promise<void> {
  if (tenantId === null) return;
  await take(database, 'links-to', `${tenantId} ${email}`, PER_RECIPIENT);
  await take(database, 'links-of', tenantId, PER_TENANT);
}

async function take(
  database: Database,
  kind: string,
  key: string,
  { links, windowSeconds, text }: typeof PER_TENANT,
): Promise<void> {
  const { consumed, remainingMs } = await openRateLimitStore(database, { kind, windowSeconds }).add(key, 1);
  if (consumed <= links) return;
  const minutes = Math.ceil(remainingMs / 60_000);
  throw new RequestError(
    'too_many_links',
    `A tenant makes at most ${links} links ${text}. Try again in ${minutes} minutes, or ask the operator.`,
  );
}
