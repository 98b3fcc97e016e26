import type { EgressProxy } from '../../platform/http/egress-proxy-url.ts';
import type { ResolveHost } from '../../platform/http/host-resolver.ts';
import { checkEndpointUrl, type EndpointUrlCheck } from '../../platform/http/outbound-url.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { openRateLimitStore } from '../../platform/postgres/rate-limit-store.ts';
import { RateLimitError, RequestError } from '../../platform/request-input.ts';
import { webhookTargets } from './webhook-targets.ts';

/** The sender judges URLs by them too, so that what is accepted here is what is sent to. */
export type UrlRules = Pick<EndpointUrlCheck, 'allowHttp' | 'guard' | 'ports'> & {
  resolve: ResolveHost;
  /** Without it, the server at a URL is asked directly. */
  proxy?: EgressProxy | null;
  /** For a WABA; without it any number, for operators. */
  lookupsPerMinute?: number;
};

/** Many URLs by hand, too few to search a network for names. */
export const LOOKUPS_PER_MINUTE = 30;

/** For webhooks or alerts; returns the URL as it is stored. Throws RequestError: `rate_limit_exceeded`, or the code of the refused URL. */
export async function checkWabaUrl(
  { database, urlRules }: { database: Database; urlRules: UrlRules },
  wabaId: string,
  url: string,
  options: Pick<EndpointUrlCheck, 'presentUrl' | 'unresolved'> = {},
): Promise<string> {
  const { lookupsPerMinute, proxy: _, ...rules } = urlRules;
  const targets = await webhookTargets(database, wabaId);
  const beforeLookup = async () => {
    if (lookupsPerMinute !== undefined) await takeUrlLookup(database, wabaId, lookupsPerMinute);
  };
  const verdict = await checkEndpointUrl(url, { ...rules, ...options, targets, beforeLookup });
  if (!verdict.ok) throw new RequestError(verdict.code, verdict.message);
  return verdict.url;
}

/** Throws RateLimitError when a WABA has made too many within a minute. */
export async function takeUrlLookup(database: Database, wabaId: string, limit: number): Promise<void> {
  const taken = openRateLimitStore(database, { kind: 'url_check', windowSeconds: 60 });
  const { consumed, remainingMs } = await taken.add(wabaId, 1);
  if (consumed <= limit) return;
  const message = `A WABA has ${limit} checks of URLs with a name per minute: wait a minute.`;
  throw new RateLimitError(message, remainingMs);
}
