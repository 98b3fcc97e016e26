const RESERVED_NAMES = new Set(
  `accept-encoding authority connection content-encoding content-length content-type cookie cookie2 date expect
   forwarded host http2-settings idempotency-key keep-alive origin proxy-authenticate proxy-authorization
   proxy-connection referer set-cookie te trailer transfer-encoding upgrade user-agent via`.split(/\s+/),
);
const RESERVED_PREFIXES = ['x-service-', 'x-hub-signature', 'webhook-', 'x-forwarded-', 'sec-', ':'];

/** Reserved are ours, those that say where and how the body is sent, and those that a browser or a proxy would set. Case does not matter. */
export function isReservedHeader(name: string): boolean {
  const lowered = name.trim().toLowerCase();
  return RESERVED_NAMES.has(lowered) || RESERVED_PREFIXES.some((prefix) => lowered.startsWith(prefix));
}
