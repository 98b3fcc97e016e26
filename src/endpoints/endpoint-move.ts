import type { SecretBox } from '../platform/crypto/secret-box.ts';
import { changeSealedHeaders, customHeaderNames } from './endpoint-headers.ts';
import type { EndpointOptions } from './endpoint-options.ts';
import type { Endpoint } from './store.ts';

/** What a change of the URL meant for the endpoint's secrets. */
export type EndpointMove = {
  /** Own headers that were forgotten: their values were meant for the server before. */
  droppedHeaderNames: string[];
  /** The URL leads to another server, and the one before still knows the signing secret. */
  secretRotationAdvised: boolean;
};

type MovedHeaders = { move: EndpointMove; customHeadersSealed: string | null };

/**
 * The headers of an endpoint after a change. Values that are never shown must not leave by a new URL either: when
 * scheme, host or port change, only headers that the same change gives are kept. Throws as `changeSealedHeaders`.
 */
export function headersAfterChange(
  secretBox: SecretBox,
  present: Endpoint,
  { url = present.url, customHeaders }: Pick<EndpointOptions, 'url' | 'customHeaders'>,
): MovedHeaders {
  const isMoved = new URL(url).origin !== new URL(present.url).origin;
  const kept = isMoved ? { id: present.id, customHeadersSealed: null } : present;
  const customHeadersSealed =
    customHeaders === undefined
      ? kept.customHeadersSealed
      : changeSealedHeaders(secretBox, kept, customHeaders);
  const named = new Set(Object.keys(customHeaders ?? {}).map((name) => name.toLowerCase()));
  const isForgotten = (name: string) => customHeaders !== null && !named.has(name.toLowerCase());
  const droppedHeaderNames = isMoved ? (customHeaderNames(secretBox, present) ?? []).filter(isForgotten) : [];
  return { move: { droppedHeaderNames, secretRotationAdvised: isMoved }, customHeadersSealed };
}

/** What the audit log says of it: both hosts, and names of headers, whose values are secret. */
export function moveDetail(
  from: string,
  to: string,
  { droppedHeaderNames, secretRotationAdvised }: EndpointMove,
): Record<string, string> {
  const host = new URL(to).host;
  if (!secretRotationAdvised) return { host };
  const droppedHeaders = droppedHeaderNames.join(', ');
  return { host, previousHost: new URL(from).host, ...(droppedHeaders !== '' && { droppedHeaders }) };
}
